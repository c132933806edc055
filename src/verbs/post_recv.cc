// SPDX-License-Identifier: BSD-2-Clause
// ibv_post_recv and ibv_post_srq_recv: into the ring, and that is all, since the core takes receive
// requests when messages come. Only a QP in state ERR has to be told, to flush them.
#include <cerrno>
#include <mutex>

#include "verbs/qp.h"
#include "verbs/receive_ring.h"
#include "verbs/srq.h"

namespace uroce::verbs {

int post_recv(Qp& qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  using transport::QpState;
  const bool has_own_queue = qp.parts.srq == nullptr && qp.parts.receive_cq != nullptr;
  if (!has_own_queue || qp.core.state.load(std::memory_order_acquire) == QpState::kReset) {
    *bad = request;
    return EINVAL;
  }
  int error = 0;
  {
    const std::lock_guard posters(qp.receive_lock);
    error = post_receives(qp.core.receive_queue, qp.limits.max_recv_sge, request, bad);
  }
  if (qp.core.state.load(std::memory_order_seq_cst) == QpState::kErr) [[unlikely]] {
    qp.context.engine().ring(qp.doorbell);
  }
  return error;
}

int post_srq_recv(Srq& srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  const std::lock_guard posters(srq.lock);
  return post_receives(srq.core.queue, srq.max_sges, request, bad);
}

}  // namespace uroce::verbs
