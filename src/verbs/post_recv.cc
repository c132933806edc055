// SPDX-License-Identifier: BSD-2-Clause
// ibv_post_recv and ibv_post_srq_recv: into the ring, and that is all, since the core takes receive
// requests when messages come. Only a QP in state ERR has to be told, to flush them.
#include <cerrno>

#include "verbs/qp.h"
#include "verbs/queue_guard.h"
#include "verbs/receive_ring.h"
#include "verbs/srq.h"

namespace uroce::verbs {

int post_recv(Qp& qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  using transport::QpState;
  const bool has_own_queue = qp.parts.srq == nullptr && qp.parts.receive_cq != nullptr;
  if (!has_own_queue || qp.core.state.load(std::memory_order_acquire) == QpState::kReset) {
    return refuse_receives(EINVAL, request, bad);
  }
  int error = 0;
  {
    const QueueGuard posters(qp.receive_lock, qp.context.engine());
    if (!posters.is_held()) return refuse_receives(EIO, request, bad);
    error = post_receives(qp.core.receive_queue, qp.limits.max_recv_sge, request, bad);
  }
  if (qp.core.state.load(std::memory_order_seq_cst) == QpState::kErr) [[unlikely]] {
    qp.context.engine().ring(qp.doorbell);
  }
  return error;
}

int post_srq_recv(Srq& srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  const QueueGuard posters(srq.lock, srq.context.engine());
  if (!posters.is_held()) return refuse_receives(EIO, request, bad);
  return post_receives(srq.core.queue, srq.max_sges, request, bad);
}

}  // namespace uroce::verbs
