// SPDX-License-Identifier: BSD-2-Clause
// A frame that stands for several packets (uroce/packet.h), taken apart into them.
//
// Of the run's headers, packet i carries those that its own opcode has: a RETH goes with the first
// packet of the message, immediate data and IETH with the last, an AETH with the first and the last
// of a READ response; MIDDLE packets carry a BTH only (and an XRCETH, if all do) and differ from
// each other only in the PSN.
// The acknowledge request and the solicited event go with the last packet of the run.
//
//   PayloadCursor payload(frame.payload());
//   for (unsigned i = 0; i < frame.packet_count; ++i) {
//     std::size_t header_bytes = run_headers(frame, i, header);
//     for (std::size_t left = run_payload_bytes(frame, i); left != 0;) {
//       ConstBytes piece = payload.take(left);
//       left -= piece.size();
//       ...
//     }
//   }
//
// For UDP_SEGMENT, `train_packets` says how many packets from one on can leave by one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "uroce/packet.h"
#include "wire/opcode.h"

namespace uroce::wire {

// The opcode of packet `index`, with what it carries.
[[nodiscard]] const OpcodeInfo& run_opcode(const TxFrame& frame, unsigned index);

// Writes the headers of packet `index` and returns how many bytes they are.
std::size_t run_headers(const TxFrame& frame, unsigned index,
                        std::span<std::byte, kMaxHeaderBytes> out);

[[nodiscard]] std::uint32_t run_payload_bytes(const TxFrame& frame, unsigned index);

// Headers, payload and pad of packet `index`; without the ICRC.
[[nodiscard]] std::uint32_t run_packet_bytes(const TxFrame& frame, unsigned index);

// How many packets from `index` on, at most `limit` (1 or more), are of one size, but that the last
// of them may be shorter: what UDP_SEGMENT can cut from one buffer. Of a WRITE, the FIRST (longer
// by its RETH) and the packet behind it are one train, the others a second; a SEND is one train.
[[nodiscard]] unsigned train_packets(const TxFrame& frame, unsigned index, unsigned limit);

// Walks a gather list and hands it out in the pieces that consecutive packets need.
class PayloadCursor {
 public:
  explicit PayloadCursor(std::span<const ConstBytes> gather) : gather_(gather) {}

  // The next piece: 1 to `limit` bytes that lie together. `limit` is not 0, and the list is not
  // used up: a frame's list holds what the frame says it does.
  [[nodiscard]] ConstBytes take(std::size_t limit);

  // Copies the next `out.size()` bytes.
  void copy(Bytes out);

 private:
  std::span<const ConstBytes> gather_;
  std::size_t offset_ = 0;  // into the first of gather_
};

}  // namespace uroce::wire
