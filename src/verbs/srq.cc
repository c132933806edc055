// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/srq.h"

#include <cerrno>
#include <memory>
#include <new>

#include "verbs/limits.h"
#include "verbs/receive_ring.h"

namespace uroce::verbs {
namespace {

Srq* failed(int error) {
  errno = error;
  return nullptr;
}

bool is_valid(const ibv_srq_attr& a) {
  return a.max_wr >= 1 && a.max_wr <= kWorkRequestsMax && a.max_sge <= kSgesMax;
}

}  // namespace

Srq* create_srq(Pd& pd, ibv_srq& handle, ibv_srq_attr& attributes) {
  engine::Engine& engine = pd.context.engine();
  if (engine.is_abandoned()) return failed(EIO);
  if (!is_valid(attributes)) return failed(EINVAL);
  std::unique_ptr<Srq> srq(new (std::nothrow) Srq(pd, handle));
  if (srq == nullptr) return failed(ENOMEM);
  const std::uint32_t stride = receive_stride(attributes.max_sge);
  srq->ring = engine::ZeroedMemory(receive_ring_bytes(attributes.max_wr, stride));
  if (!srq->ring || !engine.quotas().srq.take()) return failed(ENOMEM);
  srq->max_sges = attributes.max_sge;
  srq->core.queue.set_memory(srq->ring.bytes(), attributes.max_wr, stride);
  srq->core.pd = pd.id;
  srq->core.user = srq.get();
  // man ibv_create_srq: srq_limit is irrelevant here.
  attributes.srq_limit = 0;
  pd.users.fetch_add(1, std::memory_order_relaxed);
  return srq.release();
}

int modify_srq(Srq& srq, const ibv_srq_attr& attributes, int mask) {
  engine::Engine& engine = srq.context.engine();
  if (engine.is_abandoned()) return EIO;
  // IBV_DEVICE_SRQ_RESIZE is not among our capabilities.
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  if ((mask & ~IBV_SRQ_LIMIT) != 0) return EINVAL;
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  if (attributes.srq_limit > srq.core.queue.capacity()) return EINVAL;
  engine::Engine::Section section(engine);
  srq.core.limit = attributes.srq_limit;
  section.hca().check_srq_limit(srq.core);
  return 0;
}

void query_srq(Srq& srq, ibv_srq_attr& attributes) {
  attributes.max_wr = srq.core.queue.capacity();
  attributes.max_sge = srq.max_sges;
  attributes.srq_limit = srq.core.limit;
}

int destroy_srq(Srq* srq) {
  if (srq->users.load(std::memory_order_acquire) != 0) return EBUSY;
  engine::Engine& engine = srq->context.engine();
  if (!engine.is_abandoned()) {
    {
      engine::Engine::Section section(engine);
      section.hca().forget(srq->core);
      srq->events_given -= srq->context.take_back_events(&srq->handle);
    }
    wait_for_acknowledgement(srq->handle.mutex, srq->handle.cond, srq->handle.events_completed,
                             srq->events_given);
    engine.quotas().srq.give_back();
  }
  srq->pd.users.fetch_sub(1, std::memory_order_release);
  delete srq;
  return 0;
}

}  // namespace uroce::verbs
