// SPDX-License-Identifier: BSD-2-Clause
#include "transport/receive.h"

#include <algorithm>
#include <array>

#include "memory/dma.h"
#include "transport/complete.h"

namespace uroce::transport {
namespace {

using memory::Access;

inline constexpr std::size_t kPieces = 64;

RecvWqe* next_receive(HcaState& hca, Qp& qp) {
  if (qp.srq == nullptr) {
    if (qp.receive_next == qp.receive_queue.posted()) return nullptr;
    return &qp.receive_queue.at(qp.receive_next++);
  }
  Srq& srq = *qp.srq;
  if (srq.next == srq.queue.posted()) return nullptr;
  // Copied: other QPs go on with the ring while this message is in hand.
  const RecvWqe& shared = srq.queue.at(srq.next++);
  *qp.srq_copy = shared;
  std::copy_n(shared.sges(), shared.sge_count, qp.srq_copy->sges());
  check_srq_limit(hca, srq);
  return qp.srq_copy;
}

}  // namespace

Fault take_receive(HcaState& hca, Qp& qp) {
  RcResponder& responder = qp.responder;
  // A message that was dropped has left its own.
  if (responder.receive == nullptr) responder.receive = next_receive(hca, qp);
  if (responder.receive == nullptr) return Fault::kNotReady;
  responder.receive_cursor =
      memory::SgeCursor({responder.receive->sges(), responder.receive->sge_count});
  return Fault::kNone;
}

Fault place_received(HcaState& hca, Qp& qp, ConstBytes payload) {
  RcResponder& responder = qp.responder;
  if (responder.message_bytes + payload.size() > responder.receive->length) {
    return Fault::kReceiveTooShort;
  }
  if (payload.empty()) return Fault::kNone;
  std::array<Bytes, kPieces> pieces;  // NOLINT: filled by take
  const auto taken = responder.receive_cursor.take(payload.size(), hca.regions, qp.pd,
                                                   Access::kLocalWrite, std::span<Bytes>(pieces));
  if (taken.fault != memory::MemoryFault::kNone || taken.bytes != payload.size()) {
    return Fault::kReceiveMemory;
  }
  memory::scatter(payload, {pieces.data(), taken.pieces});
  return Fault::kNone;
}

void fail_receive(HcaState& hca, Qp& qp, Fault fault) {
  complete_receive(hca, qp, {.status = kFaults[static_cast<std::size_t>(fault)].receive_status});
  if (fault != Fault::kReceiveTooShort) enter_error(hca, qp);
}

void finish_receive(HcaState& hca, Qp& qp, const wire::PacketView& view, WcOpcode opcode) {
  Received received{
      .opcode = opcode, .byte_count = qp.responder.message_bytes, .solicited = view.bth.solicited};
  if (view.opcode->immediate) {
    received.flags = wc_flag::kWithImmediate;
    received.immediate = to_big(view.immediate.value);
  }
  if (view.opcode->ieth) {
    received.flags = wc_flag::kWithInvalidate;
    received.immediate = view.ieth.rkey.value;  // a number to the application too
  }
  if (view.opcode->deth) {
    received.flags |= wc_flag::kGrh;
    received.source = view.deth.source;
    received.service_level =
        view.packet->destination->is_ipv4() ? packet_kind::kUdpIpv4 : packet_kind::kUdpIpv6;
  }
  complete_receive(hca, qp, received);
}

}  // namespace uroce::transport
