// SPDX-License-Identifier: BSD-2-Clause
#include "transport/local_operation.h"

#include "transport/complete.h"

namespace uroce::transport {

bool must_wait(const Qp& qp, const SendWqe& wqe) {
  const RcRequester& requester = qp.requester;
  if (wqe.operation == SendOperation::kLocalInvalidate) {
    return requester.send_index != requester.oldest_index;
  }
  return (wqe.flags & send_flag::kFence) != 0 && requester.reads_outstanding != 0;
}

WcStatus carry_out(HcaState& hca, const Qp& qp, const SendWqe& wqe) {
  if (wqe.operation == SendOperation::kLocalInvalidate) {
    const bool is_done = hca.regions.invalidate(wqe.rkey, accessor(qp));
    return is_done ? WcStatus::kSuccess : WcStatus::kLocalQpOperationError;
  }
  const WindowPart part = wqe.window_part();
  const bool is_bound = hca.regions.bind({.window = wqe.rkey,
                                          .region = part.region,
                                          .address = part.address,
                                          .length = part.length,
                                          .access = part.access,
                                          .by = accessor(qp)});
  return is_bound ? WcStatus::kSuccess : WcStatus::kWindowBindError;
}

void complete_carried_out(HcaState& hca, Qp& qp) {
  RcRequester& requester = qp.requester;
  while (requester.oldest_index != requester.assigned_index) {
    const SendWqe& oldest = qp.send_queue.at(requester.oldest_index);
    if (!is_local(oldest.operation) || !oldest.is_carried_out) return;
    complete_send(hca, qp, WcStatus::kSuccess, 0);
  }
}

}  // namespace uroce::transport
