// SPDX-License-Identifier: BSD-2-Clause
// What the doctor concludes from the facts; one topic per function, no look at the host.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor_facts.h"

namespace uroce::cli {

enum class Severity {
  kGood,
  kNote,     // works; could be faster, or may surprise
  kProblem,  // a program would see no device, or reach no peer
};

struct Finding {
  Severity severity = Severity::kGood;
  std::string what;
  std::string advice;  // what to do; empty where nothing is to be done
};

[[nodiscard]] std::vector<Finding> judge(const DoctorFacts& facts);

// The last line: "usable", or how many problems.
[[nodiscard]] std::string summary(const std::vector<Finding>& findings);

}  // namespace uroce::cli
