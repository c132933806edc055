// SPDX-License-Identifier: BSD-2-Clause
// One run: a scenario is built, the faults rage for a while, then they stop and everything has to
// come to its end. What it found, and how much it did.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "sim/scenario.h"

namespace uroce::sim {

struct Outcome {
  std::string violation;  // empty: none
  std::uint64_t hash = 0;
  std::uint64_t packets = 0;
  std::uint64_t lost = 0;
  std::uint64_t requests = 0;  // that succeeded
  std::uint64_t retransmitted = 0;
  Duration elapsed{};
  bool was_sabotaged = false;  // the wrong that was asked for has happened
};

// `trace`: where each packet and each thing that applications do is printed; or null.
[[nodiscard]] Outcome simulate(const Scenario& scenario, std::FILE* trace = nullptr);

}  // namespace uroce::sim
