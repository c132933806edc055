// SPDX-License-Identifier: BSD-2-Clause
// The memory under the table of memory regions, and how it grows: the larger table is allocated
// before the shard's lock is taken and the smaller one freed after it was let go. The engine takes
// the lock, as it has more to do when it lets go.
#pragma once

#include <cstddef>

#include "engine/zeroed_memory.h"
#include "memory/mr_table.h"

namespace uroce::engine {

class RegionSlots {
 public:
  explicit RegionSlots(memory::MrTable& table) : table_(table) {}

  // For more regions than so many slots hold; empty without memory. Not under the lock.
  [[nodiscard]] static ZeroedMemory make_larger(std::size_t slots);
  // Under the lock: to there, and what it was in comes back, unless the table is larger than `had`
  // by now, because another thread came first.
  void move_to(ZeroedMemory& larger, std::size_t had);

 private:
  static constexpr std::size_t kFirstSlots = 256;

  memory::MrTable& table_;
  ZeroedMemory memory_;
};

}  // namespace uroce::engine
