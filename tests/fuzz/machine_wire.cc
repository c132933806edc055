// SPDX-License-Identifier: BSD-2-Clause
// The peer's side: packets in, frames out.
#include <algorithm>
#include <cstring>

#include "fuzz/check.h"
#include "fuzz/machine.h"
#include "transport/segment.h"
#include "unit/wire/packets.h"

namespace uroce::fuzz {

using namespace transport;
using wire::Kind;
using wire::Opcode;
using wire::PacketView;

namespace {

// More turns of poll_transmit than any state of ours can need.
constexpr int kTurnsMax = 1000;

constexpr std::array kResponses = {Opcode::kRcAcknowledge,        Opcode::kRcReadResponseFirst,
                                   Opcode::kRcReadResponseMiddle, Opcode::kRcReadResponseLast,
                                   Opcode::kRcReadResponseOnly,   Opcode::kRcAtomicAcknowledge};

constexpr Gid kStranger = {{0xff, 1, 2, 3}};

PacketView view_of(Opcode opcode, Psn psn) {
  PacketView view;
  view.opcode = &wire::opcode_info(opcode);
  view.bth = {.opcode = opcode, .destination = Machine::kNumber, .ack_request = true, .psn = psn};
  return view;
}

}  // namespace

void Machine::deliver(ConstBytes packet, ConstBytes payload, std::uint16_t count,
                      std::uint8_t address) {
  RxPacket received;
  received.bytes = packet;
  received.packet_count = count;
  received.payload_is_detached = facts_.trusted_memory;
  received.detached_payload = payload;
  const Path& path = qp_->qp.attributes.path;
  if (!facts_.trusted_memory) {
    received.source = address % 16 == 15 ? &kStranger : &path.destination;
    received.destination = address % 16 == 14 ? &kStranger : &path.source;
  }
  endpoint_.hca.on_packets(endpoint_.now, kLocalLink, {&received, 1});
}

// A payload lies apart where the link carries runs. It ends where its memory does.
void Machine::deliver_simple(const PacketView& view, std::size_t payload_bytes) {
  payload_.assign(payload_bytes, std::byte{0x5a});
  scratch_ = wire::packet_bytes(view, facts_.trusted_memory ? ConstBytes() : payload_);
  const std::uint32_t packets = packets_in(payload_bytes, options_.path_mtu);
  deliver(scratch_, payload_, static_cast<std::uint16_t>(facts_.trusted_memory ? packets : 1), 0);
}

void Machine::deliver(const PacketView& made, Commands& commands) {
  PacketView view = made;
  const std::uint8_t fate = commands.byte();
  view.bth.ack_request = (fate & 1) != 0;
  view.bth.solicited = (fate & 2) != 0;
  if (fate >= 0xf0) view.bth.pkey = {commands.half()};
  if (fate >= 0xf8) view.bth.destination = {commands.word() & 0xff'ffff};
  const std::uint32_t mtu = options_.path_mtu;
  const std::array<std::uint32_t, 6> kLengths = {0, 8, mtu, mtu, mtu + 4, 2 * mtu};
  const std::uint32_t choice = commands.below(8);
  const std::size_t bytes = !view.opcode->payload      ? 0
                            : choice < kLengths.size() ? kLengths[choice]
                                                       : commands.half() % 4096u;
  payload_.assign(bytes, static_cast<std::byte>(fate));
  scratch_ = wire::packet_bytes(view, facts_.trusted_memory ? ConstBytes() : payload_);
  const std::uint16_t count =
      facts_.trusted_memory ? static_cast<std::uint16_t>(1 + commands.below(20)) : 1;
  deliver(scratch_, payload_, count, fate);
}

void Machine::request(Commands& commands) {
  auto opcode = static_cast<Opcode>(commands.below(0x20));
  if (!wire::opcode_info(opcode).is_valid()) opcode = Opcode::kUdSendOnly;
  const Psn expected = qp_->qp.responder.expected_psn;
  PacketView view = view_of(opcode, expected + static_cast<std::uint32_t>(commands.small()));
  const Area& area = kAreas[commands.below(kAreas.size())];
  const std::uint32_t where = commands.below(8);
  std::uint64_t address = endpoint_.address(area.offset) + commands.byte() * 8u;
  if (where == 6) address += area.bytes;
  if (where == 7) address = ~std::uint64_t{0} - commands.byte();
  const std::uint32_t mtu = options_.path_mtu;
  const std::array<std::uint32_t, 8> kLengths = {
      0, 8, mtu, 2 * mtu, 3 * mtu + 1, area.bytes, area.bytes + 1, commands.word()};
  view.reth = {address, {key(commands)}, kLengths[commands.below(kLengths.size())]};
  view.atomic_eth = {.virtual_address = address + (where == 5 ? 1 : 0),
                     .rkey = view.reth.rkey,
                     .swap_or_add = commands.byte(),
                     .compare = commands.byte()};
  view.ieth = {view.reth.rkey};
  view.feth = {static_cast<std::uint8_t>(where & 3),
               static_cast<wire::FlushSelectivity>(where >> 2 & 1)};
  deliver(view, commands);
}

void Machine::response(Commands& commands) {
  const RcRequester& requester = qp_->qp.requester;
  const Psn base = commands.flag() ? requester.next_psn : requester.oldest_unacked_psn;
  const Opcode opcode = kResponses[commands.below(kResponses.size())];
  PacketView view = view_of(opcode, base + static_cast<std::uint32_t>(commands.small()));
  view.aeth = {{commands.byte()}, {commands.word() & 0xff'ffff}};
  view.atomic_ack_eth = {commands.word()};
  deliver(view, commands);
}

void Machine::raw(Commands& commands) {
  const auto bytes = std::as_bytes(commands.bytes(commands.byte()));
  // Copied, so that a read behind its end is one behind an allocation.
  scratch_.assign(bytes.begin(), bytes.end());
  if (scratch_.size() >= wire::kBthBytes && commands.flag()) {
    scratch_[5] = std::byte{0};
    scratch_[6] = std::byte{kNumber.value >> 8};
    scratch_[7] = std::byte{kNumber.value & 0xff};
  }
  deliver(scratch_, {}, 1, 0);
}

void Machine::answer() {
  if (sent_.empty()) return;
  const Sent sent = sent_.front();
  sent_.pop_front();
  if (sent.kind == Kind::kReadRequest) return answer_read(sent);
  if (sent.kind == Kind::kAtomicWrite) return answer_read({sent.kind, sent.psn, 1, 0});
  const bool is_atomic = sent.kind != Kind::kSend && sent.kind != Kind::kWrite;
  PacketView view = view_of(is_atomic ? Opcode::kRcAtomicAcknowledge : Opcode::kRcAcknowledge,
                            sent.psn + (sent.packets - 1));
  view.aeth = {wire::Syndrome::ack(), {1}};
  deliver_simple(view, 0);
}

void Machine::answer_read(const Sent& sent) {
  const std::uint32_t mtu = options_.path_mtu;
  const std::uint32_t packets = packets_in(sent.bytes, mtu);
  if (packets > 64) return;  // more than any region holds: an honest peer would refuse
  for (std::uint32_t i = 0; i < packets; ++i) {
    PacketView view = view_of(wire::pick_opcode(wire::Service::kRc, Kind::kReadResponse,
                                                wire::make_place(i == 0, i + 1 == packets)),
                              sent.psn + i);
    view.aeth = {wire::Syndrome::ack(), {1}};
    deliver_simple(view, std::min(mtu, sent.bytes - i * mtu));
  }
}

void Machine::note(const TxFrame& frame) {
  RxPacket packet;
  packet.bytes = frame.headers();
  packet.payload_is_detached = true;
  packet.packet_count = 1;
  PacketView view;
  check(wire::parse(packet, view) == wire::DropReason::kNone, "what is sent parses");
  if (!view.opcode->is_request) return;
  const bool is_read = view.opcode->kind == Kind::kReadRequest;
  sent_.push_back({view.opcode->kind, view.bth.psn, frame.packet_count,
                   is_read ? view.reth.dma_bytes : frame.payload_bytes});
  if (sent_.size() > 256) sent_.pop_front();
}

void Machine::check_frame(const TxFrame& frame) const {
  const std::byte* const buffer = endpoint_.buffer.data();
  std::size_t bytes = 0;
  for (const ConstBytes piece : frame.payload()) {
    bytes += piece.size();
    const bool is_memory = piece.data() >= buffer && piece.data() < buffer + kBufferBytes;
    if (!is_memory) continue;  // inline data
    const auto offset = static_cast<std::size_t>(piece.data() - buffer);
    check(std::ranges::any_of(kAreas,
                              [&](const Area& area) {
                                return area.pd == test::Endpoint::kPd && offset >= area.offset &&
                                       offset + piece.size() <= area.offset + area.bytes;
                              }),
          "only bytes that were granted are sent");
  }
  check(bytes == frame.payload_bytes, "a frame has all of its payload");
  check(frame.packet_count >= 1 && frame.payload_bytes <= frame.packet_count * options_.path_mtu,
        "a frame is no longer than its packets");
}

void Machine::transmit(bool refuses) {
  endpoint_.hca.retry_refused(kLocalLink);
  for (int turn = 0;; ++turn) {
    check(turn < kTurnsMax, "sending comes to an end");
    burst_.clear();
    if (!endpoint_.hca.poll_transmit(endpoint_.now, kLocalLink, burst_)) break;
    std::size_t taken = burst_.frames().size();
    if (refuses) taken /= 2;
    for (TxFrame& frame : burst_.frames().first(taken)) {
      check_frame(frame);
      note(frame);
    }
    if (!refuses) continue;
    for (TxFrame& frame : burst_.frames().subspan(taken)) frame.refused = true;
    endpoint_.hca.on_refused(endpoint_.now, burst_.frames());
    break;
  }
  endpoint_.hca.publish_completions(endpoint_.now);
  while (endpoint_.hca.poll_notification() != nullptr) {
  }
}

}  // namespace uroce::fuzz
