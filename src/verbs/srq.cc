// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/srq.h"

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include "engine/engine.h"
#include "verbs/failed.h"
#include "verbs/limits.h"
#include "verbs/receive_ring.h"

namespace uroce::verbs {
namespace {

bool is_valid(const ibv_srq_attr& a) {
  return a.max_wr >= 1 && a.max_wr <= kWorkRequestsMax && a.max_sge <= kSgesMax;
}

// Empty when there is no memory.
DomainMemory make_ring(Pd& pd, std::uint32_t capacity, std::uint32_t sges) {
  const std::size_t bytes = receive_ring_bytes(capacity, receive_stride(sges));
  return DomainMemory(&pd, bytes, ResourceType::kSrq);
}

// 0, and peers may name it from now on.
int join(Srq& srq, Xrcd& xrcd, Cq& cq) {
  engine::Engine& engine = srq.context.engine();
  const std::optional<Qpn> number = engine.allocate_qpn();
  if (!number) return ENOMEM;
  srq.xrcd = &xrcd;
  srq.cq = &cq;
  srq.core.number = *number;
  srq.core.xrcd = xrcd.domain.id;
  srq.core.cq = &cq.queue;
  xrcd.users.fetch_add(1, std::memory_order_relaxed);
  cq.users.fetch_add(1, std::memory_order_relaxed);
  engine::Engine::Section section(engine);
  section.hca().insert_srq(srq.core);
  return 0;
}

// After the core has forgotten it: completions that wait would give slots back to a queue that is
// no more.
void purge_completions(Srq& srq) {
  const std::lock_guard consumers(srq.cq->lock);
  srq.cq->queue.purge(srq.core.queue.released());
}

void leave(Srq& srq) {
  srq.cq->users.fetch_sub(1, std::memory_order_release);
  srq.xrcd->users.fetch_sub(1, std::memory_order_release);
}

}  // namespace

Srq* create_xrc_srq(Pd& pd, ibv_srq& handle, ibv_srq_attr& attributes, Xrcd* xrcd, Cq* cq) {
  const bool is_ours = xrcd != nullptr && cq != nullptr && &xrcd->context == &pd.context &&
                       &cq->context == &pd.context;
  if (!is_ours) return failed(EINVAL);
  Srq* const srq = create_srq(pd, handle, attributes);
  if (srq == nullptr) return nullptr;
  if (const int error = join(*srq, *xrcd, *cq); error != 0) {
    static_cast<void>(destroy_srq(srq));
    return failed(error);
  }
  return srq;
}

Srq* create_srq(Pd& pd, ibv_srq& handle, ibv_srq_attr& attributes) {
  engine::Engine& engine = pd.context.engine();
  if (engine.is_abandoned()) return failed(EIO);
  if (!is_valid(attributes)) return failed(EINVAL);
  std::unique_ptr<Srq> srq(new (std::nothrow) Srq(pd, handle));
  if (srq == nullptr) return failed(ENOMEM);
  srq->ring = make_ring(pd, attributes.max_wr, attributes.max_sge);
  if (!srq->ring || !engine.quotas().srq.take()) return failed(ENOMEM);
  srq->max_sges = attributes.max_sge;
  srq->core.queue.set_memory(srq->ring.bytes(), attributes.max_wr,
                             receive_stride(attributes.max_sge));
  srq->core.pd = pd.id;
  srq->core.user = srq.get();
  // man ibv_create_srq: srq_limit is irrelevant here.
  attributes.srq_limit = 0;
  pd.users.fetch_add(1, std::memory_order_relaxed);
  srq->begin();
  return srq.release();
}

int modify_srq(Srq& srq, const ibv_srq_attr& attributes, int mask) {
  engine::Engine& engine = srq.context.engine();
  if (engine.is_abandoned()) return EIO;
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
  const bool resizes = (mask & IBV_SRQ_MAX_WR) != 0;
  const bool arms = (mask & IBV_SRQ_LIMIT) != 0;
  DomainMemory ring;  // the new one, then the old one
  if (resizes) {
    if (attributes.max_wr == 0 || attributes.max_wr > kWorkRequestsMax) return EINVAL;
    ring = make_ring(srq.pd, attributes.max_wr, srq.max_sges);
    if (!ring) return ENOMEM;
  }
  const std::lock_guard posters(srq.lock);
  transport::RecvQueue& queue = srq.core.queue;
  const std::uint32_t capacity = resizes ? attributes.max_wr : queue.capacity();
  // What was posted and is not polled yet has its place, as where a queue is full.
  if (queue.capacity() - queue.free_slots() > capacity) return EINVAL;
  if (arms && attributes.srq_limit > capacity) return EINVAL;
  engine::Engine::Section section(engine);
  if (resizes) {
    queue.move_to(ring.bytes(), capacity, srq.core.next);
    swap(srq.ring, ring);
  }
  if (arms) {
    srq.core.limit = attributes.srq_limit;
    section.hca().check_srq_limit(srq.core);
  }
  return 0;
}

void query_srq(Srq& srq, ibv_srq_attr& attributes) {
  const auto tell = [&] {
    attributes.max_wr = srq.core.queue.capacity();
    attributes.max_sge = srq.max_sges;
    attributes.srq_limit = srq.core.limit;
  };
  engine::Engine& engine = srq.context.engine();
  if (engine.is_abandoned()) return tell();  // who holds the locks is not in the child of a fork
  const std::lock_guard posters(srq.lock);
  const engine::Engine::Section section(engine);
  tell();
}

void Srq::leave_device() {
  engine::Engine& engine = context.engine();
  {
    engine::Engine::Section section(engine);
    section.hca().forget(core);
    if (xrcd != nullptr) purge_completions(*this);
    events_given -= context.take_back_events(&handle);
  }
  if (xrcd != nullptr) engine.release_qpn(core.number);
  engine.quotas().srq.give_back();
}

int destroy_srq(Srq* srq) {
  if (srq->users.load(std::memory_order_acquire) != 0) return EBUSY;
  if (srq->is_live()) {
    srq->end();
    wait_for_acknowledgement(srq->handle.mutex, srq->handle.cond, srq->handle.events_completed,
                             srq->events_given);
  }
  if (srq->xrcd != nullptr) leave(*srq);
  srq->pd.users.fetch_sub(1, std::memory_order_release);
  delete srq;
  return 0;
}

}  // namespace uroce::verbs
