// SPDX-License-Identifier: BSD-2-Clause
// What shared memory brings: headers, and the payload of one or more packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "uroce/packet.h"
#include "wire/build.h"

namespace uroce::test {

using ByteVector = std::vector<std::byte>;

struct Arrival {
  ByteVector headers;
  ByteVector payload;
  std::uint16_t packet_count = 1;
  bool is_frame = false;  // an Ethernet frame without a packet, which is all in `headers`
};

// `bytes` of a WRITE, which begins and ends with them, as shared memory carries it.
inline Arrival write_run(std::uint32_t psn, std::size_t bytes, std::uint16_t packets = 1,
                         Qpn to = {0x101}) {
  TxFrame frame;
  frame.payload_bytes = static_cast<std::uint32_t>(bytes);
  wire::build(frame,
              wire::Bth{.opcode = wire::Opcode::kRcWriteOnly,
                        .destination = to,
                        .ack_request = true,
                        .psn = Psn(psn)},
              wire::Reth{.virtual_address = 0x1000,
                         .rkey = RKey{7},
                         .dma_bytes = static_cast<std::uint32_t>(bytes)});
  Arrival arrival{{frame.headers().begin(), frame.headers().end()}, {}, packets};
  for (std::size_t i = 0; i < bytes; ++i) arrival.payload.push_back(static_cast<std::byte>(i));
  return arrival;
}

}  // namespace uroce::test
