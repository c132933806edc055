// SPDX-License-Identifier: BSD-2-Clause
#include "wire/parse.h"

#include "wire/bytes.h"

namespace uroce::wire {
namespace {

template <typename Wire, typename Value>
const std::byte* take(const std::byte* at, Value& value) {
  value = from_wire(load<Wire>(at));
  return at + sizeof(Wire);
}

// `at` is behind the BTH, and as many bytes as the opcode's headers need are there.
void read_any_extensions(const std::byte* at, PacketView& view) {
  const OpcodeInfo& opcode = *view.opcode;
  if (opcode.deth) at = take<DethWire>(at, view.deth);
  if (opcode.xrceth) at = take<XrcethWire>(at, view.xrceth);
  if (opcode.feth) at = take<FethWire>(at, view.feth);
  if (opcode.reth) at = take<RethWire>(at, view.reth);
  if (opcode.atomic_eth) at = take<AtomicEthWire>(at, view.atomic_eth);
  if (opcode.aeth) at = take<AethWire>(at, view.aeth);
  if (opcode.atomic_ack_eth) at = take<AtomicAckEthWire>(at, view.atomic_ack_eth);
  if (opcode.immediate) at = take<ImmediateWire>(at, view.immediate);
  if (opcode.ieth) take<IethWire>(at, view.ieth);
}

// Most packets carry none but a RETH, or none but an AETH, or none at all.
void read_extensions(const std::byte* at, PacketView& view) {
  const OpcodeInfo& opcode = *view.opcode;
  if (opcode.header_bytes == kBthBytes) return;
  if (opcode.reth && opcode.header_bytes == kBthBytes + kRethBytes) {
    take<RethWire>(at, view.reth);
  } else if (opcode.aeth && opcode.header_bytes == kBthBytes + kAethBytes) {
    take<AethWire>(at, view.aeth);
  } else {
    read_any_extensions(at, view);
  }
}

// The payload where it follows the headers, padded to whole words.
DropReason find_payload(ConstBytes rest, PacketView& view) {
  if (rest.size() % 4 != 0) return DropReason::kBadLength;
  if (!view.opcode->payload && !rest.empty()) return DropReason::kBadLength;
  if (view.bth.pad_bytes > rest.size()) return DropReason::kBadPad;
  view.payload = rest.first(rest.size() - view.bth.pad_bytes);
  return DropReason::kNone;
}

// The payload where it lies elsewhere, without pad; then the pad count only says what the packet
// would have on a wire.
DropReason find_detached_payload(ConstBytes rest, const RxPacket& packet, PacketView& view) {
  if (!rest.empty()) return DropReason::kBadLength;
  if (!view.opcode->payload && !packet.detached_payload.empty()) return DropReason::kBadLength;
  view.payload = packet.detached_payload;
  return DropReason::kNone;
}

// Every packet of a run of several carries payload.
bool is_possible_run(const PacketView& view) {
  return view.packet_count == 1 ||
         (view.packet_count > 1 && view.payload.size() >= view.packet_count);
}

}  // namespace

DropReason parse(const RxPacket& packet, PacketView& view) {
  const ConstBytes bytes = packet.bytes;
  if (bytes.size() < kBthBytes) return DropReason::kTooShort;
  const BthWords bth = load_bth(bytes.data());
  if (bth.version() != 0) return DropReason::kBadVersion;
  const OpcodeInfo& opcode = opcode_info(bth.opcode());
  if (!opcode.is_valid()) return DropReason::kUnknownOpcode;
  if (bytes.size() < opcode.header_bytes) return DropReason::kTruncatedHeaders;

  view.opcode = &opcode;
  view.packet = &packet;
  view.packet_count = packet.packet_count;
  view.bth = from_words(bth);
  const ConstBytes rest = bytes.subspan(opcode.header_bytes);
  const DropReason reason = packet.payload_is_detached ? find_detached_payload(rest, packet, view)
                                                       : find_payload(rest, view);
  if (reason != DropReason::kNone) return reason;
  if (!is_possible_run(view)) return DropReason::kBadRun;
  read_extensions(bytes.data() + kBthBytes, view);
  return DropReason::kNone;
}

}  // namespace uroce::wire
