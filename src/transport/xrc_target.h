// SPDX-License-Identifier: BSD-2-Clause
// The receiving end of XRC (IBTA annex 14): each request names a shared receive queue of the
// target's XRC domain, and what it may reach, what it receives into and where that completes are
// the queue's. So the target takes on the queue's protection domain and completion queue while it
// serves such requests; one connection thereby serves many receivers.
#pragma once

#include "transport/fault.h"
#include "transport/hca_state.h"
#include "wire/parse.h"

namespace uroce::transport {

// For the request in hand. kInvalidRequest: no queue of the domain has that number, or it is not
// the one with which the message began.
[[nodiscard]] Fault select_srq(HcaState& hca, Qp& target, const wire::PacketView& view);
// As before its first request. A receive that it took is given back to nobody.
void leave_srq(Qp& target);
// No target uses it any more.
void release_targets(Srq& srq);

}  // namespace uroce::transport
