// SPDX-License-Identifier: BSD-2-Clause
#include "engine/region_slots.h"

#include <algorithm>

namespace uroce::engine {

ZeroedMemory RegionSlots::make_larger(std::size_t slots) {
  ZeroedMemory larger(std::max(slots * 2, kFirstSlots) * sizeof(memory::MemoryRegion));
  // Touched here, or it would be under the lock, page by page.
  if (larger) std::ranges::fill(larger.bytes(), std::byte{0});
  return larger;
}

void RegionSlots::move_to(ZeroedMemory& larger, std::size_t had) {
  if (table_.slot_count() != had) return;
  static_cast<void>(table_.rehash_into(larger.as<memory::MemoryRegion>()));
  swap(memory_, larger);
}

}  // namespace uroce::engine
