// SPDX-License-Identifier: BSD-2-Clause
// What uroce-sim was asked to do.
#pragma once

#include <cstdint>
#include <span>

namespace uroce::sim {

struct CommandLine {
  std::uint64_t seed = 1;
  std::uint64_t count = 1;
  std::uint64_t hours = 0;  // go on with the next seeds for so long
  bool has_seed = false;
  bool has_trace = false;
  bool has_goodput = false;
  bool has_help = false;
  const char* pcap = nullptr;   // where to
  const char* wrong = nullptr;  // the argument that means nothing
};

[[nodiscard]] CommandLine parse_command_line(std::span<char* const> arguments);

extern const char* const kHelp;

}  // namespace uroce::sim
