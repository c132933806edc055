// SPDX-License-Identifier: BSD-2-Clause
// Packets for tests: any opcode from a view's fields, and bytes from short notations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>
#include <vector>

#include "wire/build.h"
#include "wire/parse.h"

namespace uroce::wire {

using ByteVector = std::vector<std::byte>;

inline ByteVector bytes(std::initializer_list<unsigned> values) {
  ByteVector result;
  for (const unsigned value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

inline ByteVector to_vector(ConstBytes from) { return {from.begin(), from.end()}; }

inline ByteVector counting_bytes(std::size_t count, unsigned first = 1) {
  ByteVector result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::byte>(first + i);
  return result;
}

inline void append(ByteVector& to, ConstBytes more) {
  to.insert(to.end(), more.begin(), more.end());
}

// build() with whatever headers the view's opcode has.
inline void build_as(TxFrame& frame, const PacketView& view) {
  const OpcodeInfo& opcode = *view.opcode;
  if (opcode.xrceth) {
    PacketView rc = view;
    rc.bth.opcode = static_cast<Opcode>(static_cast<unsigned>(opcode.opcode) & 0x1f);
    rc.opcode = &opcode_info(rc.bth.opcode);
    build_as(frame, rc);
    return make_xrc(frame, view.xrceth);
  }
  if (opcode.deth && opcode.immediate) return build(frame, view.bth, view.deth, view.immediate);
  if (opcode.deth) return build(frame, view.bth, view.deth);
  if (opcode.feth) return build(frame, view.bth, view.feth, view.reth);
  if (opcode.reth && opcode.immediate) return build(frame, view.bth, view.reth, view.immediate);
  if (opcode.reth) return build(frame, view.bth, view.reth);
  if (opcode.atomic_eth) return build(frame, view.bth, view.atomic_eth);
  if (opcode.atomic_ack_eth) return build(frame, view.bth, view.aeth, view.atomic_ack_eth);
  if (opcode.aeth) return build(frame, view.bth, view.aeth);
  if (opcode.immediate) return build(frame, view.bth, view.immediate);
  if (opcode.ieth) return build(frame, view.bth, view.ieth);
  return build(frame, view.bth);
}

// A view with a different value in every field.
inline PacketView sample_view(Opcode opcode) {
  return {
      .opcode = &opcode_info(opcode),
      .bth = {.opcode = opcode,
              .solicited = true,
              .mig_req = true,
              .pkey = {0x8123},
              .becn = true,
              .destination = {0xa1'b2c3},
              .ack_request = true,
              .psn = Psn(0xfe'dcba)},
      .deth = {.qkey = {0x1111'2222}, .source = {0x33'4455}},
      .xrceth = {.srq = {0x71'7273}},
      .feth = {.placement = 3, .selectivity = FlushSelectivity::kRegion},
      .reth = {.virtual_address = 0x0102'0304'0506'0708, .rkey = {0x90a0'b0c0}, .dma_bytes = 77},
      .atomic_eth = {.virtual_address = 0x1112'1314'1516'1718,
                     .rkey = {0xd0e0'f001},
                     .swap_or_add = 0x2122'2324'2526'2728,
                     .compare = 0x3132'3334'3536'3738},
      .aeth = {.syndrome = Syndrome::nak(NakCode::kRemoteAccess), .msn = {0x65'4321}},
      .atomic_ack_eth = {0x4142'4344'4546'4748},
      .immediate = {0x5152'5354},
      .ieth = {{0x6162'6364}}};
}

// From the BTH to the pad.
inline ByteVector packet_bytes(PacketView view, ConstBytes payload = {}) {
  TxFrame frame;
  frame.payload_bytes = static_cast<std::uint32_t>(payload.size());
  build_as(frame, view);
  ByteVector result = to_vector(frame.headers());
  append(result, payload);
  result.resize(result.size() + pad_bytes_for(frame.payload_bytes));
  return result;
}

}  // namespace uroce::wire
