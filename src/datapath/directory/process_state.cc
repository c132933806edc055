// SPDX-License-Identifier: BSD-2-Clause
// Reads /proc/PID/stat: "pid (name) state ppid ...", where the name may hold spaces and
// parentheses, so that fields are counted from the last ')'.
#include "datapath/directory/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "posix/uncancelled.h"

namespace uroce::datapath {
namespace {

constexpr int kStartTimeField = 22;  // man proc: counted from 1, the state is 3

// The field `wanted` of text that begins at field 3.
std::string_view field_from_state(std::string_view text, int wanted) {
  for (int field = 3; field < wanted; ++field) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return {};
    text.remove_prefix(space + 1);
  }
  return text.substr(0, text.find(' '));
}

std::optional<ProcessState> parse(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 >= text.size()) {
    return std::nullopt;
  }
  ProcessState found;
  const std::string_view name = text.substr(open + 1, close - open - 1);
  name.copy(found.program.data(), found.program.size() - 1);
  const std::string_view rest = text.substr(close + 2);
  found.state = rest.front();
  const std::string_view start = field_from_state(rest, kStartTimeField);
  std::from_chars(start.data(), start.data() + start.size(), found.start_time);
  return found;
}

}  // namespace

std::optional<ProcessState> read_process_state(std::uint32_t pid) {
  const posix::Uncancelled whole;
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%u/stat", pid);
  const int fd = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t bytes = ::read(fd, text.data(), text.size());
  ::close(fd);
  if (bytes <= 0) return std::nullopt;
  return parse({text.data(), static_cast<std::size_t>(bytes)});
}

}  // namespace uroce::datapath
