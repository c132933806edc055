// SPDX-License-Identifier: BSD-2-Clause
// Work requests that are carried out here and send nothing: binding a memory window, invalidating
// one (IBTA 10.6.5, 10.6.7.2). They take their turn in the send queue when the sending position
// comes to them, once, however often it goes back afterwards; they use no PSN; and they complete in
// order. A requester that goes back finds those behind it carried out already, which is right: the
// requests that it repeats do not depend on our windows.
#pragma once

#include "transport/hca_state.h"

namespace uroce::transport {

// IBTA 10.8.3.3: a fence waits for the READs and atomics before it. IBTA 10.6.5.1: a local
// invalidate waits for everything.
[[nodiscard]] bool must_wait(const Qp& qp, const SendWqe& wqe);

// kSuccess, or what the request says when its turn to complete has come.
[[nodiscard]] WcStatus carry_out(HcaState& hca, const Qp& qp, const SendWqe& wqe);

// After something has completed: those behind it that were carried out complete too.
[[gnu::cold]] void complete_carried_out(HcaState& hca, Qp& qp);
inline void retire_local(HcaState& hca, Qp& qp) {
  const std::uint32_t oldest = qp.requester.oldest_index;
  if (oldest == qp.requester.assigned_index) return;
  if (is_local(qp.send_queue.at(oldest).operation)) [[unlikely]]
    complete_carried_out(hca, qp);
}

}  // namespace uroce::transport
