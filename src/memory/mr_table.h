// SPDX-License-Identifier: BSD-2-Clause
// All memory regions and windows of a device, found by key: the one place that decides whether an
// access to memory is allowed, for SGEs (L_Key) and for peers (R_Key) alike.
//
// A key is an index (high 24 bits) and a variant (low 8). Its maker draws all 32 bits from a
// CSPRNG, so the index is its own hash; both keys of a region have the same value. The table is
// open addressing with linear probing, at most half full, in slots that the caller owns; erasing
// shifts the rest of a cluster back, so that there are no tombstones and the cost never grows with
// age. A slot is one cache line, also that of a window, which has its own base, bounds and rights:
// looking one up does not touch its region. What binds and unbinds windows is in window.cc.
//
// What lies behind a region is memory of the process that was there when it was registered, or
// memory on demand, of which the bytes that an access uses are brought in when it is resolved
// (pager.h), or nothing at all: zeroes when it is read, and nowhere when it is written.
//
// Whoever holds the shard's lock may call; the caller allocates and
// frees slots outside of it:
//
//   MrTable table(slots);                                     // value-initialised, power of two
//   while (table.insert(region) == InsertOutcome::kKeyTaken) region.key = random();
//   if (auto [at, fault] = table.resolve(rkey, va, n, Access::kRemoteWrite, by); ...)
//
// Wrong: keeping a Resolved::base after the lock is let go; the region may be gone.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "memory/access.h"
#include "memory/pager.h"

namespace uroce::memory {

enum class KeyKind : std::uint8_t { kRegion, kWindowType1, kWindowType2 };
enum class Backing : std::uint8_t { kPresent, kOnDemand, kNull };

// A piece of a null region that is read has at most so many bytes: no frame is longer.
inline constexpr std::size_t kNullBytesMax = std::size_t{1} << 20;

// A window that is not bound has no length and no rights.
struct alignas(64) MemoryRegion {
  std::uint64_t iova = 0;     // what SGEs and peers call its first byte; 0 if zero-based
  std::uint64_t length = 0;   // bytes
  std::byte* base = nullptr;  // where its first byte is in this process
  PdId pd{};                  // never 0: that marks an empty slot
  Access access = Access::kNone;
  std::uint32_t key = 0;  // L_Key and R_Key
  Qpn qp{};               // the one that a type 2 window is bound to; 0: any
  KeyKind kind = KeyKind::kRegion;
  Backing backing = Backing::kPresent;
  std::uint32_t window_count = 0;  // of a region: bound to it
  std::uint32_t region_key = 0;    // of a bound window

  [[nodiscard]] constexpr bool is_empty() const { return pd == PdId{}; }
  [[nodiscard]] constexpr bool is_window() const { return kind != KeyKind::kRegion; }
};
static_assert(sizeof(MemoryRegion) == 64, "a look-up touches one cache line");

// [address, address + length) would go over the end of the address space.
constexpr bool range_wraps(std::uint64_t address, std::uint64_t length) {
  return length != 0 && address + (length - 1) < address;
}

enum class MemoryFault : std::uint8_t {
  kNone,
  kInvalidKey,
  kWrongPd,
  kWrongQp,
  kOutOfBounds,
  kAccess,
  kNotPresent,  // memory on demand that is not there
};

// Through which QP a peer comes.
struct Accessor {
  PdId pd;
  Qpn qp;
};

struct [[nodiscard]] Resolved {
  // Null when there is a fault, for zero bytes, and where what is written goes nowhere.
  std::byte* base = nullptr;
  MemoryFault fault = MemoryFault::kNone;
};

enum class [[nodiscard]] InsertOutcome : std::uint8_t{
    kInserted,
    kKeyTaken,   // another region has this index: draw a new key
    kNoRoom,     // the slots are half full: rehash_into larger ones
    kBadRegion,  // no PD, or its range wraps
};

// Memory by the key of a region.
struct RegionAddress {
  LKey key{};
  std::uint64_t address = 0;
};

// A work request that binds a window.
struct WindowBinding {
  RKey window{};  // its index, and the variant that it gets
  LKey region{};
  std::uint64_t address = 0;  // as the region has it, also of a zero-based window
  std::uint64_t length = 0;   // 0: unbind (type 1)
  Access access = Access::kNone;
  Accessor by{};
};

class MrTable {
 public:
  MrTable() = default;  // no room
  // `slots`: empty ones, a power of two of them (at most 2^25: there are 2^24 indices), which stay
  // the caller's and must outlive their use here.
  explicit MrTable(std::span<MemoryRegion> slots);

  InsertOutcome insert(const MemoryRegion& region);
  // False when there is no such key, or windows are bound to the region. A window is unbound.
  bool erase(std::uint32_t key);
  // A window, whatever variant its key has by now. False when there is none.
  bool erase_window(RKey index);
  // Valid until the next insert, erase or rehash_into; null when there is no such key. (Inline
  // wherever resolve is, which is in every packet's way.)
  [[nodiscard, gnu::always_inline]] const MemoryRegion* find(std::uint32_t key) const {
    if (slots_.empty()) return nullptr;
    const MemoryRegion& home = slots_[home_of(key)];
    if (home.key == key && !home.is_empty()) [[likely]]
      return &home;
    return find_slot(key);
  }

  // Without one, nothing is present on demand.
  void set_pager(const Pager* pager) { pager_ = pager; }

  // Moves everything to `slots` (as for the constructor, room for all), and returns the old ones.
  [[nodiscard]] std::span<MemoryRegion> rehash_into(std::span<MemoryRegion> slots);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return slots_.size() / 2; }
  [[nodiscard]] std::size_t slot_count() const { return slots_.size(); }

  // IBTA 10.6.7.2: false, and nothing has changed, when it is not allowed.
  [[nodiscard]] bool bind(const WindowBinding& binding);
  // IBTA 10.6.5: a type 2 window is free again. False: the key is of nothing that `by` may
  // invalidate.
  [[nodiscard]] bool invalidate(RKey key, Accessor by);
  // What lies behind `address` in a bound window; of a region, or what is not there: itself.
  [[nodiscard]] RegionAddress behind(RKey key, std::uint64_t address) const;

  // IBTA 10.6.3: where `length` bytes at `address` are, if the key, its PD and QP, the rights and
  // the bounds allow it; checked in this order. C9-88: zero bytes are granted without a look at the
  // key, which may be anything. Of memory on demand, the first `used` bytes are brought in.
  [[gnu::always_inline]] Resolved resolve(LKey key, std::uint64_t address, std::uint64_t length,
                                          Access needed, PdId pd) const {
    return resolve(key.value, address, length, needed | Access::kLocal, pd, Qpn{}, length);
  }
  Resolved resolve(RKey key, std::uint64_t address, std::uint64_t length, Access needed,
                   Accessor by) const {
    return resolve(key.value, address, length, needed, by.pd, by.qp, length);
  }
  Resolved resolve(RKey key, std::uint64_t address, std::uint64_t length, Access needed,
                   Accessor by, std::uint64_t used) const {
    return resolve(key.value, address, length, needed, by.pd, by.qp, used);
  }

 private:
  [[nodiscard]] std::size_t home_of(std::uint32_t key) const { return (key >> 8) & mask_; }
  // The slot that holds the key's index, or the empty one where it would go.
  [[nodiscard]] std::size_t probe(std::uint32_t key) const;
  // In every packet's way, at both ends: always inline, each number in a register of its own.
  [[gnu::always_inline]] Resolved resolve(std::uint32_t key, std::uint64_t address,
                                          std::uint64_t length, Access needed, PdId pd, Qpn qp,
                                          std::uint64_t used) const;
  [[nodiscard]] Resolved resolve_unusual(const MemoryRegion& region, std::byte* at, Access needed,
                                         std::uint64_t used) const;
  [[nodiscard]] MemoryRegion* find_slot(std::uint32_t key) const;
  void unbind(MemoryRegion& window);

  std::span<MemoryRegion> slots_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
  const Pager* pager_ = nullptr;
};

inline Resolved MrTable::resolve(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                                 Access needed, PdId pd, Qpn qp, std::uint64_t used) const {
  if (length == 0) return {};
  const MemoryRegion* region = find(key);
  if (region == nullptr) return {nullptr, MemoryFault::kInvalidKey};
  if (region->pd != pd) return {nullptr, MemoryFault::kWrongPd};
  if (region->qp != Qpn{} && region->qp != qp) return {nullptr, MemoryFault::kWrongQp};
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
  auto* const at = std::bit_cast<std::byte*>(base + offset);
  if (region->backing != Backing::kPresent) [[unlikely]] {
    return resolve_unusual(*region, at, needed, std::min(used, length));
  }
  return {at, MemoryFault::kNone};
}

}  // namespace uroce::memory
