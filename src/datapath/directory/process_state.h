// SPDX-License-Identifier: BSD-2-Clause
// What /proc says about a process.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace uroce::datapath {

struct ProcessState {
  char state = '?';              // R, S, D, T (stopped), t (traced), Z ...
  std::uint64_t start_time = 0;  // in ticks since boot; with the PID it names a process for good
  std::array<char, 16> program{};

  // Somebody holds it: it will not run until somebody lets it.
  [[nodiscard]] bool is_stopped() const { return state == 'T' || state == 't'; }
};

// Nothing where there is no such process, or /proc does not show it to us.
std::optional<ProcessState> read_process_state(std::uint32_t pid);

}  // namespace uroce::datapath
