// SPDX-License-Identifier: BSD-2-Clause
// Walks the scatter/gather list of a work request as one stream of bytes, and hands out pieces of
// registered memory: to gather what is sent from (ConstBytes), or to scatter what arrives into
// (Bytes).
//
// Every piece is resolved when it is taken, not once per work request: a region may be deregistered
// between two packets. Only the bytes taken are checked, so a receive buffer may promise more than
// its region has, as long as no message reaches there. Taking in order is O(1) a piece; seeking
// back (a retransmission) starts again from the front of the list.
//
//   SgeCursor cursor(wqe.sges);
//   cursor.seek(packet_offset);
//   const auto taken = cursor.take(path_mtu, table, pd, Access::kNone, std::span(pieces));
//
// Wrong: a cursor over a list that moved; it refers to the list, it does not copy it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/mr_table.h"
#include "memory/sge.h"
#include "uroce/packet.h"

namespace uroce::memory {

class SgeCursor {
 public:
  // What a take() gave. Fewer bytes than asked for: the list ended, or `out` was full; then another
  // take goes on from there. After a fault nothing was taken and the cursor stands where it stood.
  struct [[nodiscard]] Taken {
    std::uint64_t bytes = 0;
    std::size_t pieces = 0;
    MemoryFault fault = MemoryFault::kNone;
  };

  SgeCursor() = default;
  explicit SgeCursor(std::span<const Sge> list) : list_(list) {}

  // To byte `offset` of the message; behind its end is its end.
  void seek(std::uint64_t offset);
  [[nodiscard]] std::uint64_t position() const { return element_start_ + offset_; }

  // `Piece`: ConstBytes or Bytes. Most of the time one element holds all that is wanted.
  template <typename Piece>
  Taken take(std::uint64_t bytes, const MrTable& table, PdId pd, Access needed,
             std::span<Piece> out) {
    if (out.empty() || !is_in_element(bytes)) return take_pieces(bytes, table, pd, needed, out);
    const Sge& sge = list_[element_];
    const Resolved at = table.resolve(sge.lkey, sge.address + offset_, bytes, needed, pd);
    if (at.fault != MemoryFault::kNone) return {.fault = at.fault};
    out.front() = Piece(at.base, bytes);
    advance(bytes);
    return {.bytes = bytes, .pieces = 1};
  }

 private:
  [[nodiscard]] bool is_in_element(std::uint64_t bytes) const {
    return element_ < list_.size() && bytes != 0 && bytes <= list_[element_].length - offset_;
  }
  template <typename Piece>
  Taken take_pieces(std::uint64_t bytes, const MrTable& table, PdId pd, Access needed,
                    std::span<Piece> out);
  void advance(std::uint64_t bytes);

  std::span<const Sge> list_;
  std::size_t element_ = 0;          // where we are: this element ...
  std::uint32_t offset_ = 0;         // ... and this byte of it, always before its end
  std::uint64_t element_start_ = 0;  // the bytes of all elements before it
};

}  // namespace uroce::memory
