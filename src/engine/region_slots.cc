// SPDX-License-Identifier: BSD-2-Clause
#include "engine/region_slots.h"

#include <algorithm>

namespace uroce::engine {

bool RegionSlots::grow() {
  lock_.lock();
  const std::size_t had = table_.slot_count();
  lock_.unlock();
  const std::size_t wanted = std::max(had * 2, kFirstSlots);
  ZeroedMemory larger(wanted * sizeof(memory::MemoryRegion));
  if (!larger) return false;
  // Touched here, or it would be under the lock, page by page.
  std::ranges::fill(larger.bytes(), std::byte{0});

  lock_.lock();
  if (table_.slot_count() == had) {
    static_cast<void>(table_.rehash_into(larger.as<memory::MemoryRegion>()));
    swap(memory_, larger);
  }
  lock_.unlock();
  return true;
}

}  // namespace uroce::engine
