// SPDX-License-Identifier: BSD-2-Clause
#include "wire/arrived_run.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "wire/parse.h"
#include "wire/run.h"

namespace uroce::wire {
namespace {

// Bytes of every packet but the last; 0 where no path MTU cuts `bytes` into `count` packets.
std::uint16_t segment_bytes(std::size_t bytes, std::size_t count) {
  for (std::size_t mtu = 256; mtu <= 4096; mtu *= 2) {
    if (bytes > (count - 1) * mtu && bytes <= count * mtu) return static_cast<std::uint16_t>(mtu);
  }
  return 0;
}

// Messages of UD are one packet each (IBTA 9.8.3).
bool has_longer_messages(const OpcodeInfo& opcode) {
  return opcode.payload && opcode.service != Service::kUd;
}

}  // namespace

bool ArrivedRun::open(const RxPacket& arrived) {
  arrived_ = arrived;
  frame_.header_bytes =
      static_cast<std::uint8_t>(std::min(arrived.bytes.size(), frame_.header.size()));
  std::copy_n(arrived.bytes.data(), frame_.header_bytes, frame_.header.data());
  if (arrived.payload_is_detached) {
    if (arrived.bytes.size() > frame_.header.size()) return false;
    arrived_.bytes = frame_.headers();
  }
  PacketView view;
  if (parse(arrived_, view) != DropReason::kNone) return false;
  frame_.header_bytes = view.opcode->header_bytes;
  frame_.destination_qpn = view.bth.destination;
  frame_.packet_count = view.packet_count;
  frame_.payload_bytes = static_cast<std::uint32_t>(view.payload.size());
  payload_ = view.payload;
  frame_.gather = &payload_;
  frame_.gather_count = 1;
  if (view.packet_count == 1) return true;
  frame_.segment_bytes = segment_bytes(view.payload.size(), view.packet_count);
  return frame_.segment_bytes != 0 && has_longer_messages(*view.opcode);
}

RxPacket ArrivedRun::packet(unsigned index, std::span<std::byte, kMaxHeaderBytes> headers) const {
  RxPacket packet = arrived_;
  const std::size_t bytes = run_headers(frame_, index, headers);
  packet.bytes = headers.first(bytes);
  packet.detached_payload =
      payload_.subspan(std::size_t{index} * frame_.segment_bytes, run_payload_bytes(frame_, index));
  packet.payload_is_detached = true;
  packet.packet_count = 1;
  return packet;
}

}  // namespace uroce::wire
