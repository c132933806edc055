// SPDX-License-Identifier: BSD-2-Clause
// Headers into a frame. `payload_bytes` of the frame must be set before: the pad count follows from
// it (for a run too, since the path MTU, and so every packet but the last, is whole words).
//
//   frame.payload_bytes = 2500;
//   build(frame, Bth{.opcode = Opcode::kRcWriteOnly, .destination = qpn, .psn = psn},
//         Reth{.virtual_address = va, .rkey = rkey, .dma_bytes = 2500});
//
// Extension headers are given in wire order: DETH, RETH or AtomicETH, AETH, AtomicAckETH, immediate
// or IETH.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "uroce/packet.h"
#include "wire/bytes.h"
#include "wire/headers.h"

namespace uroce::wire {

template <typename Header>
std::byte* store_header(std::byte* to, const Header& header) {
  return store(to, to_wire(header));
}

template <typename... Extensions>
void build(TxFrame& frame, const Bth& bth, const Extensions&... extensions) {
  constexpr std::size_t kBytes = (kBthBytes + ... + sizeof(to_wire(Extensions{})));
  static_assert(kBytes <= kMaxHeaderBytes);
  UROCE_CHECK(opcode_info(bth.opcode).header_bytes == kBytes);
  BthWords words = to_words(bth);
  words.set_pad(pad_bytes_for(frame.payload_bytes));
  [[maybe_unused]] std::byte* at = store_bth(frame.header.data(), words);
  ((at = store_header(at, extensions)), ...);
  frame.header_bytes = static_cast<std::uint8_t>(kBytes);
  frame.destination_qpn = bth.destination;
}

}  // namespace uroce::wire
