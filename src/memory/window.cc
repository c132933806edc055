// SPDX-License-Identifier: BSD-2-Clause
// Memory windows (IBTA 10.6.7.2): how one is bound to a part of a region, and what frees it again.
//
// A window has an index of its own for as long as it lives; each binding gives it another variant
// (the low 8 bits of its key), so that the former R_Key is dead. Type 1 may be bound over and over,
// by ibv_bind_mw, and is good for every QP of the domain. Type 2B is bound once, to the QP whose
// send queue bound it, and has to be invalidated before it is bound again.
#include <bit>

#include "memory/mr_table.h"

namespace uroce::memory {
namespace {

constexpr Access kWindowRights = Access::kRemoteWrite | Access::kRemoteRead | Access::kRemoteAtomic;

// As a number: the base of an implicit on-demand region is null.
std::uintptr_t place_of(const MemoryRegion& region) {
  return std::bit_cast<std::uintptr_t>(region.base);
}

bool is_in(const MemoryRegion& region, std::uint64_t address, std::uint64_t length) {
  const std::uint64_t offset = address - region.iova;
  return offset <= region.length && length <= region.length - offset;
}

// May it be bound, whatever to?
bool may_be_bound(const MemoryRegion& window, const WindowBinding& binding) {
  if (window.pd != binding.by.pd) return false;  // C10-72
  const bool is_zero_based = has(binding.access, Access::kZeroBased);
  if (window.kind == KeyKind::kWindowType1) return !is_zero_based;  // o10-36.2.2
  // o10-37.2.30, o10-37.2.40: free, and not to nothing
  return window.kind == KeyKind::kWindowType2 && window.length == 0 && binding.length != 0;
}

bool allows(const MemoryRegion& region, const WindowBinding& binding) {
  if (region.is_window() || region.pd != binding.by.pd) return false;
  if (!has(region.access, Access::kMwBind)) return false;  // C10-73
  // C10-74: what a window lets peers write, the region lets us write.
  const bool is_written =
      (binding.access & (Access::kRemoteWrite | Access::kRemoteAtomic)) != Access::kNone;
  if (is_written && !has(region.access, Access::kLocalWrite)) return false;
  return is_in(region, binding.address, binding.length);  // C10-75
}

}  // namespace

bool MrTable::bind(const WindowBinding& binding) {
  if (slots_.empty()) return false;
  MemoryRegion& window = slots_[probe(binding.window.value)];
  if (window.is_empty() || !may_be_bound(window, binding)) return false;
  MemoryRegion* region = nullptr;
  if (binding.length != 0) {
    region = find_slot(binding.region.value);
    if (region == nullptr || !allows(*region, binding)) return false;
  }
  unbind(window);
  window.key = binding.window.value;
  if (region == nullptr) return true;
  ++region->window_count;
  window.region_key = region->key;
  window.iova = has(binding.access, Access::kZeroBased) ? 0 : binding.address;
  window.length = binding.length;
  window.base = std::bit_cast<std::byte*>(place_of(*region) + (binding.address - region->iova));
  window.access = binding.access & kWindowRights;
  window.backing = region->backing;
  if (window.kind == KeyKind::kWindowType2) window.qp = binding.by.qp;
  return true;
}

bool MrTable::invalidate(RKey key, Accessor by) {
  MemoryRegion* const window = find_slot(key.value);
  if (window == nullptr || window->kind != KeyKind::kWindowType2 || window->pd != by.pd) {
    return false;
  }
  if (window->qp != Qpn{} && window->qp != by.qp) return false;
  unbind(*window);
  return true;
}

bool MrTable::erase_window(RKey index) {
  if (slots_.empty()) return false;
  const MemoryRegion& window = slots_[probe(index.value)];
  return !window.is_empty() && window.is_window() && erase(window.key);
}

RegionAddress MrTable::behind(RKey key, std::uint64_t address) const {
  const MemoryRegion* const window = find(key.value);
  if (window == nullptr || window->region_key == 0) return {{key.value}, address};
  const MemoryRegion& region = *find(window->region_key);
  const std::uint64_t start = region.iova + (place_of(*window) - place_of(region));
  return {{region.key}, start + (address - window->iova)};
}

void MrTable::unbind(MemoryRegion& window) {
  if (window.region_key == 0) return;
  --find_slot(window.region_key)->window_count;
  window.region_key = 0;
  window.iova = window.length = 0;
  window.base = nullptr;
  window.access = Access::kNone;
  window.qp = {};
}

}  // namespace uroce::memory
