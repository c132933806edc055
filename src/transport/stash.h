// SPDX-License-Identifier: BSD-2-Clause
// Requests that arrived ahead of a gap, kept as parsed until the gap is filled. Then they are
// carried out in their order, as if they arrived now, so the rules of the responder need not know:
// memory is never written out of order, and one missing packet costs one packet. A requester that
// goes back to the gap and sends everything again (as the standard has it) sends duplicates.
//
// One pool serves all QPs of a device. Its memory is touched only where packets were lost. When it
// is full, the QP whose packets have waited longest gives all of them up; that costs time, and
// nothing else, since what is dropped was never acknowledged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/list.h"
#include "base/psn.h"
#include "transport/qp.h"
#include "wire/parse.h"

namespace uroce::transport {

// The links between packets, apart from their bytes: finding a place among them stays in the cache.
struct StashEntry {
  std::uint16_t next = 0;  // 1-based
  std::uint16_t previous = 0;
  Psn psn;
};

struct alignas(64) StashSlot {
  wire::PacketView view;  // its payload is below
  std::array<std::byte, 4096> payload;
};

class Stash {
 public:
  // A QP keeps so many at most, and so far ahead.
  static constexpr std::uint32_t kPacketsPerQpMax = 4096;
  static constexpr std::int32_t kAheadMax = 1 << 16;

  // Zeroed memory, as many entries as slots, 65,535 at most. Without any nothing is kept.
  void set_memory(std::span<StashEntry> entries, std::span<StashSlot> slots) {
    entries_ = entries;
    slots_ = slots;
  }

  // Of the farthest request that is kept; `none` where there is none.
  [[nodiscard]] Psn last(const Qp& qp, Psn none) const {
    const std::uint16_t position = qp.responder.stashed.last;
    return position == 0 ? none : entries_[position - 1U].psn;
  }
  // Copies a request that is ahead of the expected one, if there is room and it is new.
  void keep(Qp& qp, const wire::PacketView& view);
  // The request that waits for `expected`, valid until something is kept; null where there is none.
  // Everything before it is dropped.
  [[nodiscard]] const wire::PacketView* take(Qp& qp, Psn expected);
  void forget(Qp& qp);
  [[nodiscard]] bool is_empty() const { return holders_.empty(); }

 private:
  [[nodiscard]] std::uint16_t allocate(Qp& qp);
  void release_first(Qp& qp);
  [[nodiscard]] StashEntry& entry(std::uint16_t position) { return entries_[position - 1U]; }

  std::span<StashEntry> entries_;
  std::span<StashSlot> slots_;
  std::uint16_t free_ = 0;             // the list of those that were used before, by `next`
  std::uint16_t unused_ = 0;           // from here on nobody has touched the memory
  List<Qp, &Qp::stash_hook> holders_;  // who got one last is last
};

}  // namespace uroce::transport
