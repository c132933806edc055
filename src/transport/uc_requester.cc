// SPDX-License-Identifier: BSD-2-Clause
// The requester of an unreliable connection (IBTA 9.8.2): SENDs and WRITEs leave as runs, one after
// the other, and nothing is kept for another try.
#include <algorithm>

#include "transport/data_frame.h"
#include "transport/local_operation.h"
#include "transport/unreliable.h"

namespace uroce::transport {
namespace {

void take_up(Qp& qp, SendWqe& wqe) {
  RcRequester& requester = qp.requester;
  const std::uint32_t packets = is_local(wqe.operation) ? 0 : packets_in(wqe.length, qp.path_mtu);
  wqe.status = wqe.length > kMessageBytesMax ? WcStatus::kLocalLengthError : WcStatus::kSuccess;
  wqe.is_carried_out = false;
  wqe.first_psn = requester.send_psn;
  wqe.last_psn = requester.send_psn + (packets - 1);
  requester.next_psn = requester.send_psn + packets;
  ++requester.assigned_index;
}

std::uint32_t packets_to_send(const HcaState& hca, const Qp& qp, const SendWqe& wqe) {
  const LinkFacts& facts = hca.links[qp.link].facts;
  const auto left = static_cast<std::uint32_t>(distance(qp.requester.send_psn, wqe.last_psn)) + 1;
  return std::min<std::uint32_t>(
      {left, facts.max_run_packets, packets_within(facts.max_run_bytes, qp.path_mtu)});
}

// One that was carried out before is only stepped over. False: it has to wait, or has failed.
[[gnu::cold]] bool pass_local(HcaState& hca, Qp& qp, SendWqe& wqe) {
  await_settlement(hca, qp);
  if (!wqe.is_carried_out) {
    if (must_wait(qp, wqe)) return false;
    const WcStatus status = carry_out(hca, qp, wqe);
    if (status != WcStatus::kSuccess) return hold_unreliable_fault(hca, qp, wqe, status);
    wqe.is_carried_out = true;
  }
  ++qp.requester.send_index;
  return true;
}

bool send(HcaState& hca, Qp& qp, SendWqe& wqe, TxBurst& burst) {
  RcRequester& requester = qp.requester;
  const Slice slice = make_slice(qp, wqe, requester.send_psn, packets_to_send(hca, qp, wqe));
  const Gathered gathered = gather(hca, qp, wqe, slice.offset, slice.bytes, burst);
  if (gathered.is_fault) {
    return hold_unreliable_fault(hca, qp, wqe, WcStatus::kLocalProtectionError);
  }
  TxFrame& frame = burst.next();
  frame.payload_bytes = slice.bytes;
  frame.packet_count = static_cast<std::uint16_t>(slice.packets);
  build_data_headers(frame, qp, wire::Service::kUc, wqe, slice, false);
  address_frame(frame, qp, {FrameTag::Kind::kRequest, slice.psn, requester.send_index});
  burst.commit(gathered.pieces);
  requester.send_psn += slice.packets;
  if (slice.ends) ++requester.send_index;
  await_settlement(hca, qp);
  return true;
}

}  // namespace

bool next_uc_request(HcaState& hca, Qp& qp, TxBurst& burst) {
  RcRequester& requester = qp.requester;
  while (has_unreliable_request(qp)) {
    SendWqe& wqe = qp.send_queue.at(requester.send_index);
    if (requester.send_index == requester.assigned_index) take_up(qp, wqe);
    if (wqe.status != WcStatus::kSuccess) return hold_unreliable_fault(hca, qp, wqe, wqe.status);
    if (!is_local(wqe.operation)) return send(hca, qp, wqe, burst);
    if (!pass_local(hca, qp, wqe)) return false;
  }
  return false;
}

}  // namespace uroce::transport
