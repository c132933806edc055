// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/qp.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>

#include "host/port_attributes.h"
#include "verbs/limits.h"
#include "verbs/modify_qp.h"
#include "verbs/receive_ring.h"
#include "verbs/translate.h"

namespace uroce::verbs {
namespace {

using engine::Engine;

Qp* failed(int error) {
  errno = error;
  return nullptr;
}

std::optional<transport::Service> service_of(ibv_qp_type type) {
  switch (static_cast<std::uint32_t>(type)) {  // a program in C may say any number
    case IBV_QPT_RC:
      return transport::Service::kRc;
    case IBV_QPT_UC:
      return transport::Service::kUc;
    case IBV_QPT_UD:
      return transport::Service::kUd;
    default:
      return std::nullopt;
  }
}

int check(const Pd& pd, const ibv_qp_init_attr& a, const Cq* send_cq, const Cq* receive_cq,
          const Srq* srq) {
  if (!service_of(a.qp_type)) return EOPNOTSUPP;
  if (send_cq == nullptr || receive_cq == nullptr) return EINVAL;
  if (&send_cq->context != &pd.context || &receive_cq->context != &pd.context) return EINVAL;
  // The core checks a receive's memory against the QP's domain, which must be the poster's too.
  if (srq != nullptr && (&srq->context != &pd.context || srq->pd.id != pd.id)) return EINVAL;
  const ibv_qp_cap& cap = a.cap;
  const bool within = cap.max_send_wr <= kWorkRequestsMax && cap.max_send_sge <= kSgesMax &&
                      cap.max_inline_data <= kInlineBytesMax;
  // man ibv_create_qp: with an SRQ, the receive capabilities are ignored.
  const bool receive_within =
      srq != nullptr || (cap.max_recv_wr <= kWorkRequestsMax && cap.max_recv_sge <= kSgesMax);
  return within && receive_within ? 0 : EINVAL;
}

constexpr std::size_t round_up_to_line(std::size_t bytes) {
  return (bytes + 63) & ~std::size_t{63};
}

// Where the parts of a QP's memory lie.
struct Layout {
  std::uint32_t send_stride, receive_stride;
  std::size_t send_bytes, receive_bytes, copy_bytes, replay_bytes;

  [[nodiscard]] std::size_t total() const {
    return send_bytes + receive_bytes + copy_bytes + replay_bytes;
  }
};

Layout layout_of(const ibv_qp_cap& cap, const Srq* srq) {
  const std::size_t list =
      std::max(cap.max_send_sge * sizeof(memory::Sge), std::size_t{cap.max_inline_data});
  Layout l{};
  l.send_stride = static_cast<std::uint32_t>(round_up_to_line(sizeof(transport::SendWqe) + list));
  l.send_bytes = std::size_t{transport::SendQueue::ring_slots(cap.max_send_wr)} * l.send_stride;
  l.receive_stride = receive_stride(cap.max_recv_sge);
  l.receive_bytes = round_up_to_line(receive_ring_bytes(cap.max_recv_wr, l.receive_stride));
  if (srq != nullptr) l.copy_bytes = round_up_to_line(receive_stride(srq->max_sges));
  l.replay_bytes = sizeof(transport::ReplayEntry) * transport::kReplayMax;
  return l;
}

transport::QpInit init_of(Qp& qp, const Layout& l) {
  const std::span<std::byte> memory = qp.memory.bytes();
  const std::span<std::byte> copy = memory.subspan(l.send_bytes + l.receive_bytes, l.copy_bytes);
  const std::span<std::byte> replay = memory.subspan(l.total() - l.replay_bytes, l.replay_bytes);
  return {
      .number = {},
      .pd = qp.pd.id,
      .service = qp.service,
      .send_cq = &qp.send_cq->queue,
      .receive_cq = &qp.receive_cq->queue,
      .srq = qp.srq == nullptr ? nullptr : &qp.srq->core,
      .signal_all = qp.signals_all,
      .max_inline = qp.limits.max_inline_data,
      .datagram_bytes = host::port_path_mtu(qp.context.engine().port().facts().mtu_bytes),
      .send_memory = memory.first(l.send_bytes),
      .send_capacity = qp.limits.max_send_wr,
      .send_stride = l.send_stride,
      .receive_memory = memory.subspan(l.send_bytes, l.receive_bytes),
      .receive_capacity = qp.limits.max_recv_wr,
      .receive_stride = l.receive_stride,
      .srq_copy = copy.empty() ? nullptr : reinterpret_cast<transport::RecvWqe*>(copy.data()),
      .replay = {reinterpret_cast<transport::ReplayEntry*>(replay.data()), transport::kReplayMax},
      .user = &qp};
}

ibv_qp_cap given_caps(ibv_qp_cap asked, const Srq* srq) {
  if (srq != nullptr) asked.max_recv_wr = asked.max_recv_sge = 0;
  return asked;
}

void use_others(Qp& qp, int change) {
  const auto by = static_cast<std::uint32_t>(change);
  qp.pd.users.fetch_add(by, std::memory_order_acq_rel);
  qp.send_cq->users.fetch_add(by, std::memory_order_acq_rel);
  qp.receive_cq->users.fetch_add(by, std::memory_order_acq_rel);
  if (qp.srq != nullptr) qp.srq->users.fetch_add(by, std::memory_order_acq_rel);
}

}  // namespace

Qp* create_qp(Pd& pd, ibv_qp& handle, ibv_qp_init_attr& attributes, Cq* send_cq, Cq* receive_cq,
              Srq* srq) {
  Engine& engine = pd.context.engine();
  if (engine.is_abandoned()) return failed(EIO);
  if (const int error = check(pd, attributes, send_cq, receive_cq, srq); error != 0) {
    return failed(error);
  }
  std::unique_ptr<Qp> qp(new (std::nothrow) Qp(pd, handle));
  if (qp == nullptr) return failed(ENOMEM);
  qp->limits = given_caps(attributes.cap, srq);
  qp->service = *service_of(attributes.qp_type);
  qp->signals_all = attributes.sq_sig_all != 0;
  qp->send_cq = send_cq;
  qp->receive_cq = receive_cq;
  qp->srq = srq;
  qp->doorbell.qp = &qp->core;
  const Layout layout = layout_of(qp->limits, srq);
  qp->memory = engine::ZeroedMemory(layout.total());
  if (!qp->memory || !engine.quotas().qp.take()) return failed(ENOMEM);
  const std::optional<Qpn> number = engine.allocate_qpn();
  if (!number) {
    engine.quotas().qp.give_back();
    return failed(ENOMEM);
  }
  transport::QpInit init = init_of(*qp, layout);
  init.number = *number;
  {
    Engine::Section section(engine);
    section.hca().create_qp(qp->core, init);
  }
  use_others(*qp, 1);
  attributes.cap = qp->limits;
  return qp.release();
}

int destroy_qp(Qp* qp) {
  Engine& engine = qp->context.engine();
  if (!engine.is_abandoned()) {
    engine.linger(qp->core);
    std::unique_ptr<engine::PeerEntry> unused_peer;
    {
      Engine::Section section(engine);
      section.take_doorbells();
      section.hca().destroy_qp(qp->core);
      purge_completions(*qp);
      unused_peer.reset(let_go_of_path(section, *qp));
      qp->events_given -= qp->context.take_back_events(&qp->handle);
    }
    engine.release_qpn(qp->core.number);
    engine.quotas().qp.give_back();
    wait_for_acknowledgement(qp->handle.mutex, qp->handle.cond, qp->handle.events_completed,
                             qp->events_given);
  }
  use_others(*qp, -1);
  delete qp;
  return 0;
}

void query_qp(Qp& qp, ibv_qp_attr& attributes, ibv_qp_init_attr& initial) {
  Engine& engine = qp.context.engine();
  transport::QpAttributes now = qp.core.attributes;
  bool is_draining = false;
  if (!engine.is_abandoned()) {
    Engine::Section section(engine);
    now = section.hca().query_qp(qp.core);
    is_draining = now.state == transport::QpState::kSqd && !section.hca().is_drained(qp.core);
  }
  to_ibv_qp_attr(now, attributes);
  attributes.sq_draining = is_draining ? 1 : 0;
  attributes.cap = qp.limits;
  initial = {.qp_context = qp.handle.qp_context,
             .send_cq = &qp.send_cq->handle,
             .recv_cq = &qp.receive_cq->handle,
             .srq = qp.srq == nullptr ? nullptr : &qp.srq->handle,
             .cap = qp.limits,
             .qp_type = static_cast<ibv_qp_type>(qp.service),
             .sq_sig_all = qp.signals_all ? 1 : 0};
}

}  // namespace uroce::verbs
