// SPDX-License-Identifier: BSD-2-Clause
// One run: a scenario is built, the faults rage for a while, then they stop and everything has to
// come to its end. What it found, and how much it did.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "sim/capture.h"
#include "sim/ledger.h"
#include "sim/scenario.h"

namespace uroce::sim {

struct Outcome {
  std::string violation;  // empty: none
  std::uint64_t hash = 0;
  std::uint64_t packets = 0;
  std::uint64_t lost = 0;
  std::uint64_t requests = 0;  // that succeeded
  std::uint64_t retransmitted = 0;
  Arrivals arrivals = {};
  Duration elapsed{};
  bool was_sabotaged = false;  // the wrong that was asked for has happened
};

// For who wants to look on; either may be null.
struct Spectators {
  std::FILE* trace = nullptr;  // each packet, and each thing that applications do
  Capture* capture = nullptr;
};

// What somebody types who wants to see that seed again.
[[nodiscard]] std::string replay_command(std::uint64_t seed);

[[nodiscard]] Outcome simulate(const Scenario& scenario, const Spectators& spectators = {});

}  // namespace uroce::sim
