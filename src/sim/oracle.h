// SPDX-License-Identifier: BSD-2-Clause
// The first thing that was not as it must be. What must hold is said where it is known: of a flow's
// requests in flow.cc, of receives in receive_pool.cc, of an ending in end.cc, of limits and leaks
// in invariants.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/world.h"

namespace uroce::sim {

class Oracle {
 public:
  explicit Oracle(World& world) : world_(world) {}

  // Only the first one is kept: what comes after it may follow from it.
  [[gnu::format(printf, 2, 3), gnu::cold]] void violated(const char* format, ...);
  [[nodiscard]] bool is_violated() const { return !story_.empty(); }
  [[nodiscard]] const std::string& story() const { return story_; }

 private:
  World& world_;
  std::string story_;
};

}  // namespace uroce::sim
