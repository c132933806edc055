// SPDX-License-Identifier: BSD-2-Clause
// The memory under the table of memory regions, and how it grows: the larger table is allocated
// before the shard's lock is taken and the smaller one freed after it was let go.
#pragma once

#include <cstddef>

#include "engine/shard_lock.h"
#include "engine/zeroed_memory.h"
#include "memory/mr_table.h"

namespace uroce::engine {

class RegionSlots {
 public:
  RegionSlots(ShardLock& lock, memory::MrTable& table) : lock_(lock), table_(table) {}

  // Makes room for more than there was; false without memory. Other threads may do the same at the
  // same time, and whoever comes second finds nothing left to do.
  [[nodiscard]] bool grow();

 private:
  static constexpr std::size_t kFirstSlots = 256;

  ShardLock& lock_;
  memory::MrTable& table_;
  ZeroedMemory memory_;
};

}  // namespace uroce::engine
