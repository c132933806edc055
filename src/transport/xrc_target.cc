// SPDX-License-Identifier: BSD-2-Clause
#include "transport/xrc_target.h"

namespace uroce::transport {

Fault select_srq(HcaState& hca, Qp& target, const wire::PacketView& view) {
  const Qpn number = view.xrceth.srq;
  if (target.responder.in_message) {
    const bool is_same = target.srq != nullptr && target.srq->number == number;
    return is_same ? Fault::kNone : Fault::kInvalidRequest;
  }
  Srq* const srq = hca.demux.find_srq(number);
  if (srq == nullptr || srq->xrcd != target.xrcd) return Fault::kInvalidRequest;
  if (srq == target.srq) return Fault::kNone;
  target.target_hook.unlink();
  srq->targets.push_back(target);
  target.srq = srq;
  target.pd = srq->pd;
  target.receive_cq = srq->cq;
  return Fault::kNone;
}

void leave_srq(Qp& target) {
  target.target_hook.unlink();
  target.srq = nullptr;
  target.pd = {};
  target.receive_cq = nullptr;
  target.responder.receive = nullptr;
}

void release_targets(Srq& srq) {
  while (Qp* const target = srq.targets.front()) leave_srq(*target);
}

}  // namespace uroce::transport
