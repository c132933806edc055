// SPDX-License-Identifier: BSD-2-Clause
// Headers into a frame. `payload_bytes` of the frame must be set before: the pad count follows from
// it (for a run too, since the path MTU, and so every packet but the last, is whole words).
//
//   frame.payload_bytes = 2500;
//   build(frame, Bth{.opcode = Opcode::kRcWriteOnly, .destination = qpn, .psn = psn},
//         Reth{.virtual_address = va, .rkey = rkey, .dma_bytes = 2500});
//
// Extension headers are given in wire order: DETH or XRCETH, FETH, RETH or AtomicETH, AETH,
// AtomicAckETH, immediate or IETH.
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

// For when it turns out one by one which extension headers there are.
//
//   HeaderWriter writer(frame, bth);
//   if (begins) writer.add(reth);
//   writer.finish();
class HeaderWriter {
 public:
  HeaderWriter(TxFrame& frame, const Bth& bth) : frame_(frame), opcode_(bth.opcode) {
    BthWords words = to_words(bth);
    words.set_pad(pad_bytes_for(frame.payload_bytes));
    at_ = store_bth(frame.header.data(), words);
    frame.destination_qpn = bth.destination;
  }
  template <typename Extension>
  void add(const Extension& extension) {
    at_ = store_header(at_, extension);
  }
  void finish() {
    frame_.header_bytes = static_cast<std::uint8_t>(at_ - frame_.header.data());
    UROCE_CHECK(opcode_info(opcode_).header_bytes == frame_.header_bytes);
  }

 private:
  TxFrame& frame_;
  const Opcode opcode_;
  std::byte* at_;
};

template <typename... Extensions>
void build(TxFrame& frame, const Bth& bth, const Extensions&... extensions) {
  static_assert((kBthBytes + ... + sizeof(to_wire(Extensions{}))) <= kMaxHeaderBytes);
  HeaderWriter writer(frame, bth);
  (writer.add(extensions), ...);
  writer.finish();
}

}  // namespace uroce::wire
