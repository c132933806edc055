// SPDX-License-Identifier: BSD-2-Clause
#include "memory/mr_table.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"

namespace uroce::memory {
namespace {

// What a null region is read from: pages that nobody writes cost no memory.
alignas(4096) constinit std::array<std::byte, kNullBytesMax> zeroes{};

bool is_written(Access needed) {
  return (needed & (Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteAtomic)) !=
         Access::kNone;
}

}  // namespace

MrTable::MrTable(std::span<MemoryRegion> slots) : slots_(slots), mask_(slots.size() - 1) {
  UROCE_CHECK(std::has_single_bit(slots.size()));
}

Resolved MrTable::resolve_unusual(const MemoryRegion& region, std::byte* at, Access needed,
                                  std::uint64_t used) const {
  const bool writes = is_written(needed);
  if (region.backing == Backing::kNull) {
    if (writes) return {};
    if (used > kNullBytesMax) return {nullptr, MemoryFault::kOutOfBounds};
    return {zeroes.data(), MemoryFault::kNone};
  }
  const bool is_there = used == 0 || (pager_ != nullptr && pager_->bring_in(at, used, writes));
  if (!is_there) return {nullptr, MemoryFault::kNotPresent};
  return {at, MemoryFault::kNone};
}

std::size_t MrTable::probe(std::uint32_t key) const {
  std::size_t i = home_of(key);
  // Ends: at least half of the slots are empty.
  while (!slots_[i].is_empty() && slots_[i].key >> 8 != key >> 8) i = (i + 1) & mask_;
  return i;
}

MemoryRegion* MrTable::find_slot(std::uint32_t key) const {
  if (slots_.empty()) return nullptr;
  MemoryRegion& slot = slots_[probe(key)];
  return !slot.is_empty() && slot.key == key ? &slot : nullptr;
}

InsertOutcome MrTable::insert(const MemoryRegion& region) {
  if (region.is_empty() || range_wraps(region.iova, region.length)) {
    return InsertOutcome::kBadRegion;
  }
  if (size_ >= capacity()) return InsertOutcome::kNoRoom;
  MemoryRegion& slot = slots_[probe(region.key)];
  if (!slot.is_empty()) return InsertOutcome::kKeyTaken;
  slot = region;
  if (!slot.is_window()) slot.access = slot.access | Access::kLocal;
  ++size_;
  return InsertOutcome::kInserted;
}

bool MrTable::erase(std::uint32_t key) {
  MemoryRegion* const erased = find_slot(key);
  if (erased == nullptr || erased->window_count != 0) return false;
  unbind(*erased);
  // Walk the rest of the cluster; whatever may live in the hole (its home is not behind it) moves
  // there and leaves the next hole.
  std::size_t hole = probe(key);
  for (std::size_t i = (hole + 1) & mask_; !slots_[i].is_empty(); i = (i + 1) & mask_) {
    const std::size_t steps_from_home = (i - home_of(slots_[i].key)) & mask_;
    const std::size_t steps_from_hole = (i - hole) & mask_;
    if (steps_from_home < steps_from_hole) continue;
    slots_[hole] = slots_[i];
    hole = i;
  }
  slots_[hole] = MemoryRegion{};
  --size_;
  return true;
}

std::span<MemoryRegion> MrTable::rehash_into(std::span<MemoryRegion> slots) {
  UROCE_CHECK(slots.size() / 2 >= size_);
  const std::span<MemoryRegion> former = slots_;
  const Pager* const pager = pager_;
  *this = MrTable(slots);
  pager_ = pager;
  for (const MemoryRegion& region : former) {
    if (!region.is_empty()) UROCE_CHECK(insert(region) == InsertOutcome::kInserted);
  }
  return former;
}

}  // namespace uroce::memory
