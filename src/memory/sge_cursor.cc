// SPDX-License-Identifier: BSD-2-Clause
#include "memory/sge_cursor.h"

#include <algorithm>

namespace uroce::memory {

void SgeCursor::seek(std::uint64_t offset) {
  if (offset < position()) *this = SgeCursor(list_);
  advance(offset - position());
}

// Leaves the cursor before a byte, or at the end of the list: elements of no length are stepped
// over.
void SgeCursor::advance(std::uint64_t bytes) {
  while (element_ < list_.size()) {
    const std::uint32_t left = list_[element_].length - offset_;
    if (bytes < left) {
      offset_ += static_cast<std::uint32_t>(bytes);
      return;
    }
    bytes -= left;
    element_start_ += list_[element_].length;
    offset_ = 0;
    ++element_;
  }
}

template <typename Piece>
SgeCursor::Taken SgeCursor::take_pieces(std::uint64_t bytes, const MrTable& table, PdId pd,
                                        Access needed, std::span<Piece> out) {
  SgeCursor next = *this;
  Taken taken;
  next.advance(0);
  while (taken.bytes < bytes && taken.pieces < out.size() && next.element_ < list_.size()) {
    const Sge& sge = list_[next.element_];
    const std::uint64_t length =
        std::min<std::uint64_t>(bytes - taken.bytes, sge.length - next.offset_);
    const Resolved at = table.resolve(sge.lkey, sge.address + next.offset_, length, needed, pd);
    if (at.fault != MemoryFault::kNone) return {.fault = at.fault};
    out[taken.pieces++] = Piece(at.base, length);
    taken.bytes += length;
    next.advance(length);
  }
  *this = next;
  return taken;
}

template SgeCursor::Taken SgeCursor::take_pieces(std::uint64_t, const MrTable&, PdId, Access,
                                                 std::span<ConstBytes>);
template SgeCursor::Taken SgeCursor::take_pieces(std::uint64_t, const MrTable&, PdId, Access,
                                                 std::span<Bytes>);

}  // namespace uroce::memory
