// SPDX-License-Identifier: BSD-2-Clause
// The requester of unreliable datagrams (IBTA 9.8.3): each work request is one packet and has its
// own destination. A refused frame takes those behind it to the same route with it, so a burst has
// datagrams of a QP for one path only; with the next path the QP waits until the burst is settled.
#include "transport/data_frame.h"
#include "transport/unreliable.h"

namespace uroce::transport {
namespace {

void build_headers(TxFrame& frame, const Qp& qp, const SendWqe& wqe, const DatagramTarget& target) {
  const bool has_immediate = wqe.operation == SendOperation::kSendWithImmediate;
  const wire::Bth bth{
      .opcode = has_immediate ? wire::Opcode::kUdSendOnlyImmediate : wire::Opcode::kUdSendOnly,
      .solicited = (wqe.flags & send_flag::kSolicited) != 0,
      .pkey = qp.pkey,
      .destination = target.qpn,
      .psn = qp.requester.send_psn};
  const bool own = (target.qkey.value & kOwnQKey) != 0;
  const wire::Deth deth{.qkey = own ? qp.attributes.qkey : target.qkey, .source = qp.number};
  if (has_immediate) {
    build(frame, bth, deth, wire::Immediate{to_big(wqe.immediate)});
  } else {
    build(frame, bth, deth);
  }
}

void pass(HcaState& hca, Qp& qp) {
  RcRequester& requester = qp.requester;
  requester.send_psn += 1;
  requester.next_psn = requester.send_psn;
  requester.assigned_index = ++requester.send_index;
  await_settlement(hca, qp);
}

// The path of those that wait for settlement, or null.
const AddressPath* path_at_hand(const Qp& qp) {
  const RcRequester& requester = qp.requester;
  return requester.send_index == requester.oldest_index
             ? nullptr
             : qp.send_queue.at(requester.send_index - 1).target().path;
}

}  // namespace

bool next_datagram(HcaState& hca, Qp& qp, TxBurst& burst) {
  if (!has_unreliable_request(qp)) return false;
  RcRequester& requester = qp.requester;
  SendWqe& wqe = qp.send_queue.at(requester.send_index);
  const DatagramTarget target = wqe.target();
  const AddressPath* at_hand = path_at_hand(qp);
  if (at_hand != nullptr && target.path != at_hand) return false;
  if (wqe.length > qp.path_mtu) {
    requester.assigned_index = requester.send_index + 1;
    return hold_unreliable_fault(hca, qp, wqe, WcStatus::kLocalLengthError);
  }
  const Gathered gathered = gather(hca, qp, wqe, 0, wqe.length, burst);
  if (gathered.is_fault) {
    requester.assigned_index = requester.send_index + 1;
    return hold_unreliable_fault(hca, qp, wqe, WcStatus::kLocalProtectionError);
  }
  if (target.path == nullptr) {
    ++hca.counters.datagrams_to_nobody;
    pass(hca, qp);
    return false;
  }
  TxFrame& frame = burst.next();
  frame.payload_bytes = wqe.length;
  build_headers(frame, qp, wqe, target);
  address_frame(frame, qp, {FrameTag::Kind::kRequest, requester.send_psn, requester.send_index});
  frame.path = &target.path->path;
  frame.carries_addresses = true;
  burst.commit(gathered.pieces);
  pass(hca, qp);
  return true;
}

}  // namespace uroce::transport
