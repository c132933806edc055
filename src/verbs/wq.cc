// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/wq.h"

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include "engine/engine.h"
#include "verbs/failed.h"
#include "verbs/limits.h"
#include "verbs/number_of.h"
#include "verbs/queue_guard.h"
#include "verbs/receive_ring.h"

namespace uroce::verbs {
namespace {

using engine::Engine;
using transport::QpState;

int check(const Context& context, const Pd* pd, const Cq* cq, const ibv_wq_init_attr& a) {
  if (!context.engine().has_raw_packets()) return EOPNOTSUPP;
  if ((a.comp_mask & ~std::uint32_t{IBV_WQ_INIT_ATTR_FLAGS}) != 0) return EOPNOTSUPP;
  // All of them are offloads.
  if ((a.comp_mask & IBV_WQ_INIT_ATTR_FLAGS) != 0 && a.create_flags != 0) return EOPNOTSUPP;
  const bool are_ours =
      pd != nullptr && cq != nullptr && &pd->context == &context && &cq->context == &context;
  const bool are_valid = number_of(a.wq_type) == IBV_WQT_RQ && a.max_wr >= 1 &&
                         a.max_wr <= kWorkRequestsMax && a.max_sge <= kSgesMax;
  return are_ours && are_valid ? 0 : EINVAL;
}

transport::QpInit init_of(Wq& wq, Qpn number, std::uint32_t capacity, std::uint32_t stride) {
  transport::QpInit init;
  init.number = number;
  init.pd = wq.pd.id;
  init.service = transport::Service::kRawPacket;
  init.receive_cq = &wq.cq.queue;
  init.receive_memory = wq.ring.bytes();
  init.receive_capacity = capacity;
  init.receive_stride = stride;
  init.user = &wq;
  return init;
}

void purge_completions(Wq& wq) {
  const std::lock_guard consumers(wq.cq.lock);
  wq.cq.queue.purge(wq.core.number, nullptr);
}

// As mlx4 and mlx5 have it: from ERR the way is through RESET.
bool is_allowed(ibv_wq_state from, ibv_wq_state to) {
  if (to == IBV_WQS_RDY) return from != IBV_WQS_ERR;
  return to == IBV_WQS_RESET || (to == IBV_WQS_ERR && from != IBV_WQS_RESET);
}

void move(Engine::Section& section, Wq& wq, QpState to) {
  namespace attribute = transport::qp_attribute;
  transport::QpAttributes wanted;
  wanted.state = to;
  const std::uint32_t mask =
      attribute::kState | (to == QpState::kInit ? attribute::kPort : std::uint32_t{0});
  static_cast<void>(section.hca().modify_qp(section.now(), wq.core, wanted, mask, nullptr));
}

void enter(Engine::Section& section, Wq& wq, ibv_wq_state to) {
  if (to == IBV_WQS_RDY) {
    move(section, wq, QpState::kInit);
    move(section, wq, QpState::kRtr);
  } else if (to == IBV_WQS_ERR) {
    move(section, wq, QpState::kErr);
  } else {
    move(section, wq, QpState::kReset);
    purge_completions(wq);
    // Somebody may have polled some of them since the core emptied it.
    wq.core.receive_queue.reset();
  }
}

}  // namespace

Wq* create_wq(Context& context, ibv_wq& handle, Pd* pd, Cq* cq, ibv_wq_init_attr& attributes) {
  Engine& engine = context.engine();
  if (engine.is_abandoned()) return failed(EIO);
  if (const int error = check(context, pd, cq, attributes); error != 0) return failed(error);
  std::unique_ptr<Wq> wq(new (std::nothrow) Wq(*pd, *cq, handle));
  if (wq == nullptr) return failed(ENOMEM);
  const std::uint32_t stride = receive_stride(attributes.max_sge);
  wq->ring = DomainMemory(pd, receive_ring_bytes(attributes.max_wr, stride), ResourceType::kWq);
  if (!wq->ring || !engine.quotas().wq.take()) return failed(ENOMEM);
  const std::optional<Qpn> number = engine.allocate_qpn();
  if (!number) {
    engine.quotas().wq.give_back();
    return failed(ENOMEM);
  }
  wq->max_sges = attributes.max_sge;
  {
    Engine::Section section(engine);
    section.hca().create_qp(wq->core, init_of(*wq, *number, attributes.max_wr, stride));
  }
  pd->users.fetch_add(1, std::memory_order_relaxed);
  cq->users.fetch_add(1, std::memory_order_relaxed);
  wq->begin();
  return wq.release();
}

ibv_wq_state state_of(const Wq& wq) {
  const QpState state = wq.core.state.load(std::memory_order_acquire);
  if (state == QpState::kReset) return IBV_WQS_RESET;
  return state == QpState::kErr ? IBV_WQS_ERR : IBV_WQS_RDY;
}

int modify_wq(Wq& wq, const ibv_wq_attr& attributes) {
  constexpr std::uint32_t kKnown = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS;
  Engine& engine = wq.context.engine();
  if (engine.is_abandoned()) return EIO;
  const std::uint32_t mask = attributes.attr_mask;
  if (mask == 0 || (mask & ~kKnown) != 0) return EINVAL;
  if ((mask & IBV_WQ_ATTR_FLAGS) != 0) return EOPNOTSUPP;
  Engine::Section section(engine);
  const ibv_wq_state now = state_of(wq);
  if ((mask & IBV_WQ_ATTR_CURR_STATE) != 0 &&
      number_of(attributes.curr_wq_state) != number_of(now)) {
    return EINVAL;
  }
  if ((mask & IBV_WQ_ATTR_STATE) == 0) return 0;
  if (number_of(attributes.wq_state) > IBV_WQS_ERR || !is_allowed(now, attributes.wq_state)) {
    return EINVAL;
  }
  if (attributes.wq_state != now) enter(section, wq, attributes.wq_state);
  return 0;
}

void Wq::leave_device() {
  Engine& engine = context.engine();
  {
    Engine::Section section(engine);
    section.take_doorbells();
    section.hca().destroy_qp(core);
    purge_completions(*this);
    events_given -= context.take_back_events(&handle);
  }
  engine.release_qpn(core.number);
  engine.quotas().wq.give_back();
}

int destroy_wq(Wq* wq) {
  if (wq->users.load(std::memory_order_acquire) != 0) return EBUSY;
  if (wq->is_live()) {
    wq->end();
    wait_for_acknowledgement(wq->handle.mutex, wq->handle.cond, wq->handle.events_completed,
                             wq->events_given);
  }
  wq->pd.users.fetch_sub(1, std::memory_order_release);
  wq->cq.users.fetch_sub(1, std::memory_order_release);
  delete wq;
  return 0;
}

int post_wq_recv(Wq& wq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  if (wq.core.state.load(std::memory_order_acquire) == QpState::kReset) {
    return refuse_receives(EINVAL, request, bad);
  }
  int error = 0;
  {
    const QueueGuard posters(wq.lock, wq.context.engine());
    if (!posters.is_held()) return refuse_receives(EIO, request, bad);
    error = post_receives(wq.core.receive_queue, wq.max_sges, request, bad);
  }
  if (wq.core.state.load(std::memory_order_seq_cst) == QpState::kErr) [[unlikely]] {
    wq.context.engine().ring(wq.doorbell);
  }
  return error;
}

}  // namespace uroce::verbs
