// SPDX-License-Identifier: BSD-2-Clause
#include "cli/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>

namespace uroce::cli {
namespace {

// With the indent, 80.
constexpr std::size_t kColumns = 69;
constexpr std::string_view kIndent = "           ";

struct Mark {
  std::string_view text;
  std::string_view colour;
};

Mark mark_of(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return {"  ok       ", "\x1b[32m"};
    case Severity::kNote:
      return {"  note     ", "\x1b[33m"};
    case Severity::kProblem:
      return {"  PROBLEM  ", "\x1b[1;31m"};
  }
  return {};
}

// Words with line breaks between them, every further line under the first one.
std::string wrapped(const std::string& text, std::string_view lead) {
  std::istringstream words(text);
  std::string result, word;
  std::size_t column = 0;
  while (words >> word) {
    if (column == 0) {
      result.append(lead);
      column = lead.size();
    } else if (column + 1 + word.size() > kColumns) {
      result.append("\n").append(kIndent.size() + lead.size(), ' ');
      column = lead.size();
    } else {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

}  // namespace

std::string findings_text(const std::vector<Finding>& findings, bool colour) {
  std::ostringstream out;
  for (const Finding& finding : findings) {
    const Mark mark = mark_of(finding.severity);
    out << (colour ? mark.colour : "") << mark.text << (colour ? "\x1b[0m" : "")
        << wrapped(finding.what, "") << "\n";
    if (!finding.advice.empty()) out << kIndent << wrapped(finding.advice, "-> ") << "\n";
  }
  out << "\n" << summary(findings) << "\n";
  return out.str();
}

int examine_host(const Arguments& arguments) {
  const std::vector<Finding> findings = judge(gather_facts(arguments));
  const bool colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  std::cout << findings_text(findings, colour);
  return std::ranges::count(findings, Severity::kProblem, &Finding::severity) == 0 ? 0 : 1;
}

}  // namespace uroce::cli
