// SPDX-License-Identifier: BSD-2-Clause
#include "transport/unreliable.h"

#include "transport/complete.h"

namespace uroce::transport {
namespace {

void settle(HcaState& hca, Qp& qp) {
  RcRequester& requester = qp.requester;
  while (requester.oldest_index != requester.send_index) {
    const SendWqe& wqe = qp.send_queue.at(requester.oldest_index);
    complete_send(hca, qp, WcStatus::kSuccess, is_local(wqe.operation) ? 0 : wqe.length);
  }
  requester.oldest_unacked_psn = requester.send_psn;
  if (requester.send_index != requester.assigned_index) {
    const WcStatus status = qp.send_queue.at(requester.send_index).status;
    if (status != WcStatus::kSuccess) return fail_oldest(hca, qp, status);
  } else if (qp.sqd_notify_due) {
    qp.sqd_notify_due = false;
    raise_event(hca, qp, EventType::kSqDrained);
  }
  make_unreliable_ready(hca, qp);
}

}  // namespace

void settle(HcaState& hca) {
  while (Qp* qp = hca.unsettled.pop_front()) settle(hca, *qp);
}

void unsend_unreliable(Qp& qp, FrameTag tag) {
  // A later frame of the burst may have ended its work: that is flushed, and nothing sent again.
  const QpState state = qp.state.load(std::memory_order_relaxed);
  if (state != QpState::kRts && state != QpState::kSqd) return;
  qp.requester.send_index = tag.index;
  qp.requester.send_psn = tag.psn;
}

bool has_unreliable_request(const Qp& qp) {
  const RcRequester& requester = qp.requester;
  const QpState state = qp.state.load(std::memory_order_relaxed);
  if (state == QpState::kRts) return requester.send_index != qp.send_queue.posted();
  // IBTA 10.3.1.5: what was begun is finished, nothing else is begun.
  return state == QpState::kSqd && requester.send_index != requester.assigned_index;
}

bool hold_unreliable_fault(HcaState& hca, Qp& qp, SendWqe& wqe, WcStatus status) {
  wqe.status = status;
  await_settlement(hca, qp);
  return false;
}

void make_unreliable_ready(HcaState& hca, Qp& qp) {
  // settle() comes back to those that are in the burst at hand.
  if (qp.unsettled_hook.is_linked() || !has_unreliable_request(qp)) return;
  if (qp.service == Service::kUd) {
    const AddressPath* next = qp.send_queue.at(qp.requester.send_index).target().path;
    if (next != nullptr) qp.link = next->link;
  }
  hca.links[qp.link].ready.push_back(qp);
}

}  // namespace uroce::transport
