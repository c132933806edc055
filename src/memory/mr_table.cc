// SPDX-License-Identifier: BSD-2-Clause
#include "memory/mr_table.h"

#include <bit>

#include "base/check.h"

namespace uroce::memory {

MrTable::MrTable(std::span<MemoryRegion> slots) : slots_(slots), mask_(slots.size() - 1) {
  UROCE_CHECK(std::has_single_bit(slots.size()));
}

Resolved MrTable::resolve(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                          Access needed, Accessor by) const {
  if (length == 0) return {};
  const MemoryRegion* region = find(key);
  if (region == nullptr) return {nullptr, MemoryFault::kInvalidKey};
  if (region->pd != by.pd) return {nullptr, MemoryFault::kWrongPd};
  if (region->qp != Qpn{} && region->qp != by.qp) return {nullptr, MemoryFault::kWrongQp};
  if (!has(region->access, needed)) return {nullptr, MemoryFault::kAccess};
  // Modulo 2^64 an address below the region becomes an offset behind its end, since insert() lets
  // no region wrap; and `length` is compared with what is left, never added to anything.
  const std::uint64_t offset = address - region->iova;
  if (offset > region->length || length > region->length - offset) {
    return {nullptr, MemoryFault::kOutOfBounds};
  }
  // Through an integer: the base of an implicit on-demand region (all of the address space) is
  // null.
  const auto base = std::bit_cast<std::uintptr_t>(region->base);
  return {std::bit_cast<std::byte*>(base + offset), MemoryFault::kNone};
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
  *this = MrTable(slots);
  for (const MemoryRegion& region : former) {
    if (!region.is_empty()) UROCE_CHECK(insert(region) == InsertOutcome::kInserted);
  }
  return former;
}

}  // namespace uroce::memory
