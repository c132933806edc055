// SPDX-License-Identifier: BSD-2-Clause
#include "transport/execute.h"

#include <array>

#include "memory/dma.h"
#include "transport/receive.h"
#include "transport/remote_invalidate.h"
#include "transport/segment.h"

namespace uroce::transport {
namespace {

using memory::Access;
using wire::PacketView;

// What a request needs, by its kind; a FLUSH says so itself.
constexpr std::array<Access, wire::kKindCount> make_needed() {
  std::array<Access, wire::kKindCount> needed{};
  const auto needs = [&needed](wire::Kind kind, Access access) {
    needed[static_cast<std::size_t>(kind)] = access;
  };
  needs(wire::Kind::kWrite, Access::kRemoteWrite);
  needs(wire::Kind::kAtomicWrite, Access::kRemoteWrite);
  needs(wire::Kind::kReadRequest, Access::kRemoteRead);
  needs(wire::Kind::kCompareSwap, Access::kRemoteAtomic);
  needs(wire::Kind::kFetchAdd, Access::kRemoteAtomic);
  return needed;
}
constexpr auto kNeeded = make_needed();

// Where a WRITE goes, of which `used` bytes are in hand; a length of 0 may go anywhere.
Fault resolve_target(const HcaState& hca, const Qp& qp, std::uint64_t length, std::uint64_t used,
                     std::byte*& target) {
  const RcResponder& responder = qp.responder;
  const auto found = hca.regions.resolve(responder.write_rkey, responder.write_address, length,
                                         Access::kRemoteWrite, accessor(qp), used);
  target = found.base;
  return found.fault == memory::MemoryFault::kNone ? Fault::kNone : Fault::kRemoteKey;
}

// The target of a WRITE, checked as a whole before its first byte lands.
Fault open_write(const HcaState& hca, Qp& qp, const PacketView& view, std::byte*& target) {
  RcResponder& responder = qp.responder;
  const wire::Reth& reth = view.reth;
  if (reth.dma_bytes > kMessageBytesMax) return Fault::kInvalidRequest;
  responder.write_address = reth.virtual_address;
  responder.write_rkey = reth.rkey;
  responder.write_left = reth.dma_bytes;
  responder.message_bytes = 0;
  return resolve_target(hca, qp, reth.dma_bytes, view.payload.size(), target);
}

void place_written(Qp& qp, ConstBytes payload, std::byte* target) {
  RcResponder& responder = qp.responder;
  const Bytes piece{target, payload.size()};
  memory::scatter(payload, {&piece, 1});
  responder.write_address += payload.size();
  responder.write_left -= static_cast<std::uint32_t>(payload.size());
  responder.message_bytes += static_cast<std::uint32_t>(payload.size());
}

}  // namespace

Access flush_rights(const wire::Feth& feth) {
  Access needed = Access::kNone;
  if ((feth.placement & wire::Feth::kGlobalVisibility) != 0) needed = Access::kFlushGlobal;
  if ((feth.placement & wire::Feth::kPersistence) != 0) needed = needed | Access::kFlushPersistent;
  return needed;
}

Fault check_order(const RcResponder& responder, const PacketView& view) {
  return wire::follows(responder.in_message, responder.kind, *view.opcode) ? Fault::kNone
                                                                           : Fault::kInvalidRequest;
}

Fault check_permission(const Qp& qp, const PacketView& view) {
  const wire::Kind kind = view.opcode->kind;
  const Access needed = kind == wire::Kind::kFlush ? flush_rights(view.feth)
                                                   : kNeeded[static_cast<std::size_t>(kind)];
  return has(qp.access, needed) ? Fault::kNone : Fault::kAccessFlags;
}

// IBTA 9.7.4.1.6: FIRST and MIDDLE carry the path MTU, LAST 1 to it, ONLY 0 to it; of a run, the
// last packet does.
Fault check_length(const Qp& qp, const PacketView& view) {
  if (!view.opcode->payload) return view.packet_count == 1 ? Fault::kNone : Fault::kInvalidRequest;
  const std::uint64_t full = std::uint64_t{view.packet_count} * qp.path_mtu;
  const std::uint64_t bytes = view.payload.size();
  bool is_right = bytes == full;
  if (view.opcode->ends()) {
    const bool may_be_empty = view.opcode->begins() && view.packet_count == 1;
    is_right = bytes <= full && (may_be_empty || bytes + qp.path_mtu > full);
  }
  return is_right ? Fault::kNone : Fault::kInvalidRequest;
}

void advance(RcResponder& responder, const PacketView& view, std::uint32_t packets) {
  responder.expected_psn += packets;
  responder.kind = view.opcode->kind;
  responder.in_message = !view.opcode->ends();
}

Fault execute_send(HcaState& hca, Qp& qp, const PacketView& view) {
  RcResponder& responder = qp.responder;
  if (view.opcode->begins()) {
    if (Fault f = take_receive(hca, qp); f != Fault::kNone) return f;
    responder.message_bytes = 0;
  }
  if (Fault f = place_received(hca, qp, view.payload); f != Fault::kNone) return f;
  if (view.opcode->ieth) {
    if (Fault f = invalidate_for_peer(hca, qp, view.ieth.rkey); f != Fault::kNone) return f;
  }
  responder.message_bytes += static_cast<std::uint32_t>(view.payload.size());
  advance(responder, view, view.packet_count);
  if (view.opcode->ends()) finish_receive(hca, qp, view, WcOpcode::kReceive);
  return Fault::kNone;
}

Fault execute_write(HcaState& hca, Qp& qp, const PacketView& view) {
  RcResponder& responder = qp.responder;
  const bool begins = view.opcode->begins();
  // Before the key: without a receive it is an RNR NAK, and with one that carries bad news.
  if (view.opcode->immediate) {
    if (Fault f = take_receive(hca, qp); f != Fault::kNone) return f;
  }
  std::byte* target = nullptr;
  if (begins) {
    if (Fault f = open_write(hca, qp, view, target); f != Fault::kNone) return f;
  }
  // The lengths of the packets add up to what the RETH said.
  const bool fits = view.opcode->ends() ? view.payload.size() == responder.write_left
                                        : view.payload.size() < responder.write_left;
  if (!fits) return Fault::kInvalidRequest;
  // Resolved again for every packet: the region may have been deregistered meanwhile.
  if (!begins) {
    const std::size_t bytes = view.payload.size();
    if (Fault f = resolve_target(hca, qp, bytes, bytes, target); f != Fault::kNone) return f;
  }
  place_written(qp, view.payload, target);
  advance(responder, view, view.packet_count);
  if (view.opcode->immediate) finish_receive(hca, qp, view, WcOpcode::kReceiveRdmaWithImmediate);
  return Fault::kNone;
}

}  // namespace uroce::transport
