// SPDX-License-Identifier: BSD-2-Clause
// What the requesters of the unreliable services (UC and UD) share. Nobody acknowledges, so a work
// request is finished when the datapath has taken the last of its packets: after the burst that
// they were in, when those that it refused were unsent.
#pragma once

#include "transport/hca_state.h"
#include "transport/rc.h"

namespace uroce::transport {

// A frame of the QP is in the burst at hand, or it has come to a local operation.
inline void await_settlement(HcaState& hca, Qp& qp) { hca.unsettled.push_back(qp); }
// The burst was taken but for what was unsent: completes what was sent.
void settle(HcaState& hca);
void unsend_unreliable(Qp& qp, FrameTag tag);

// Is there a request to send in this state?
[[nodiscard]] bool has_unreliable_request(const Qp& qp);
// The request at the sending position cannot be sent; it fails when those before it are finished.
// Always false.
bool hold_unreliable_fault(HcaState& hca, Qp& qp, SendWqe& wqe, WcStatus status);

// To be asked for frames: a UD QP on the link of its next datagram.
void make_unreliable_ready(HcaState& hca, Qp& qp);

// uc_requester.cc, ud_requester.cc. One frame into the burst; false when there is none to send now.
[[nodiscard]] bool next_uc_request(HcaState& hca, Qp& qp, TxBurst& burst);
[[nodiscard]] bool next_datagram(HcaState& hca, Qp& qp, TxBurst& burst);

// uc_responder.cc, ud_responder.cc
void on_uc_request(HcaState& hca, Qp& qp, const wire::PacketView& view);
void on_datagram(HcaState& hca, Qp& qp, const wire::PacketView& view);

}  // namespace uroce::transport
