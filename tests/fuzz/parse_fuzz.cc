// SPDX-License-Identifier: BSD-2-Clause
// The parsers of what comes from a wire. The input is taken for an Ethernet frame, for a packet
// from its BTH on, and for one whose payload lies apart. Whatever parses stays inside the input,
// can be described, and is the same again when it is built from its fields and parsed once more.
// What steering sees of a frame is of its length only.
#include <algorithm>
#include <array>
#include <string_view>

#include "fuzz/check.h"
#include "steering/frame_key.h"
#include "steering/hash.h"
#include "unit/wire/packets.h"
#include "wire/describe.h"
#include "wire/icrc.h"
#include "wire/network.h"

namespace uroce::fuzz {
namespace {

using wire::DropReason;
using wire::PacketView;

bool is_inside(ConstBytes part, ConstBytes whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

bool have_equal_fields(const PacketView& a, const PacketView& b) {
  const wire::OpcodeInfo& opcode = *a.opcode;
  return a.opcode == b.opcode && a.bth == b.bth && std::ranges::equal(a.payload, b.payload) &&
         (!opcode.deth || a.deth == b.deth) && (!opcode.xrceth || a.xrceth == b.xrceth) &&
         (!opcode.feth || a.feth == b.feth) && (!opcode.reth || a.reth == b.reth) &&
         (!opcode.atomic_eth || a.atomic_eth == b.atomic_eth) &&
         (!opcode.aeth || a.aeth == b.aeth) &&
         (!opcode.atomic_ack_eth || a.atomic_ack_eth == b.atomic_ack_eth) &&
         (!opcode.immediate || a.immediate == b.immediate) && (!opcode.ieth || a.ieth == b.ieth);
}

void check_description(const RxPacket& packet) {
  std::array<char, wire::kDescriptionChars> room;
  const std::string_view line = wire::describe(packet, room);
  check(!line.empty() && line.size() < room.size(), "every description fits");
  std::array<char, 40> little;
  const std::string_view beginning = wire::describe(packet, little);
  check(beginning.size() <= little.size() && line.substr(0, 20) == beginning.substr(0, 20),
        "a description is cut off, not changed");
}

void check_packet(const RxPacket& packet) {
  check_description(packet);
  PacketView view;
  const DropReason reason = wire::parse(packet, view);
  check(!wire::name(reason).empty(), "every reason has a name");
  if (reason != DropReason::kNone) return;
  const ConstBytes home = packet.payload_is_detached ? packet.detached_payload : packet.bytes;
  check(is_inside(view.payload, home), "the payload lies inside of the packet");
  check(view.opcode->payload || view.payload.empty(), "only some opcodes have a payload");
  if (packet.payload_is_detached || packet.packet_count != 1) return;
  // The pad of a stranger may be longer than ours would be.
  const wire::ByteVector again = wire::packet_bytes(view, view.payload);
  RxPacket second;
  second.bytes = again;
  PacketView built;
  check(wire::parse(second, built) == DropReason::kNone, "what we build from a packet parses");
  built.bth.pad_bytes = view.bth.pad_bytes;
  check(have_equal_fields(view, built), "what we build from a packet says the same");
}

// The more there is of a frame, the more layers it has.
void check_key(ConstBytes frame) {
  const std::uint8_t layers = steering::classify(frame).layers;
  for (const std::size_t bytes : {frame.size() / 2, frame.size() - frame.size() / 8}) {
    check((steering::classify(frame.first(bytes)).layers & ~layers) == 0,
          "a shorter frame has no other layers");
  }
  const std::uint32_t hash = steering::hash_of(
      {.key = {1, 2, 3}, .fields = steering::hash_field::kAll}, steering::classify(frame));
  check(hash == 0 || layers != 0, "only what has layers is hashed");
}

void check_frame(ConstBytes frame) {
  check_key(frame);
  wire::NetworkView view;
  const wire::NetworkDrop drop = wire::parse_network(frame, view);
  check(!wire::name(drop).empty(), "every drop has a name");
  if (drop != wire::NetworkDrop::kNone) return;
  check(is_inside(view.ip_header, frame) && is_inside(view.udp_header, frame) &&
            is_inside(view.udp_payload, frame),
        "all of a packet lies inside of its frame");
  if (view.udp_payload.size() < wire::kBthBytes + wire::kIcrcBytes) return;
  RxPacket packet;
  packet.bytes = view.udp_payload.first(view.udp_payload.size() - wire::kIcrcBytes);
  packet.source = &view.source;
  packet.destination = &view.destination;
  const std::uint32_t start = wire::icrc_start(wire::crc32, view.ip_header, view.udp_header);
  (void)wire::icrc_of(wire::crc32, start, packet.bytes);
  check_packet(packet);
}

// As it would come out of shared memory: the headers, and the payload elsewhere.
void check_run(ConstBytes bytes) {
  if (bytes.size() < wire::kBthBytes) return;
  const auto opcode = static_cast<wire::Opcode>(bytes[0]);
  RxPacket packet;
  packet.bytes =
      bytes.first(std::min<std::size_t>(bytes.size(), wire::opcode_info(opcode).header_bytes));
  packet.detached_payload = bytes.subspan(packet.bytes.size());
  packet.payload_is_detached = true;
  for (const unsigned count : {0u, 1u, 2u, 100u, 65'535u}) {
    packet.packet_count = static_cast<std::uint16_t>(count);
    check_packet(packet);
  }
}

}  // namespace
}  // namespace uroce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace uroce;
  const ConstBytes input = std::as_bytes(std::span(data, bytes));
  RxPacket packet;
  packet.bytes = input;
  fuzz::check_frame(input);
  fuzz::check_packet(packet);
  fuzz::check_run(input);
  return 0;
}
