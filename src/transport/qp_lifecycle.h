// SPDX-License-Identifier: BSD-2-Clause
// What a change of state does to a queue pair, once check_modify has allowed it.
#pragma once

#include "transport/hca_state.h"

namespace uroce::transport {

void apply_attributes(HcaState& hca, Qp& qp, const QpAttributes& attributes, std::uint32_t mask,
                      Peer* peer);
void enter_state(HcaState& hca, Instant now, Qp& qp, QpState to, std::uint32_t mask);
// As freshly created: nothing is owed, queued or known.
void reset(HcaState& hca, Qp& qp);
[[nodiscard]] bool is_send_drained(const Qp& qp);
// In SQD, to a state that is named: as with rxe, what was begun is awaited, or given up.
[[nodiscard]] bool may_leave_sqd(const Qp& qp, QpState to);

// Something was posted to the send queue, or may be sent from now on; in ERR also to the receive
// queue.
void on_posted(HcaState& hca, Qp& qp);

}  // namespace uroce::transport
