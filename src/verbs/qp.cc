// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/qp.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>

#include "host/port_attributes.h"
#include "posix/capability.h"
#include "verbs/failed.h"
#include "verbs/limits.h"
#include "verbs/modify_qp.h"
#include "verbs/receive_ring.h"
#include "verbs/translate.h"

namespace uroce::verbs {
namespace {

using engine::Engine;

std::optional<transport::Service> service_of(ibv_qp_type type) {
  switch (static_cast<std::uint32_t>(type)) {  // a program in C may say any number
    case IBV_QPT_RC:
      return transport::Service::kRc;
    case IBV_QPT_UC:
      return transport::Service::kUc;
    case IBV_QPT_UD:
      return transport::Service::kUd;
    case IBV_QPT_RAW_PACKET:
      return transport::Service::kRawPacket;
    case IBV_QPT_XRC_SEND:
      return transport::Service::kXrcInitiator;
    case IBV_QPT_XRC_RECV:
      return transport::Service::kXrcTarget;
    default:
      return std::nullopt;
  }
}

// As the kernel, who may not is told so before what there is.
int check_service(const Engine& engine, const std::optional<transport::Service>& service) {
  if (!service) return EOPNOTSUPP;
  if (*service != transport::Service::kRawPacket) return 0;
  if (!posix::has_capability(CAP_NET_RAW)) return EPERM;
  return engine.has_raw_packets() ? 0 : EOPNOTSUPP;
}

// What the type has no use for is not looked at.
QpParts used_parts(transport::Service service, const QpParts& given) {
  if (given.table != nullptr) return {.pd = given.pd, .table = given.table, .hash = given.hash};
  switch (service) {
    case transport::Service::kXrcInitiator:
      return {.pd = given.pd, .send_cq = given.send_cq};
    case transport::Service::kXrcTarget:
      return {.xrcd = given.xrcd};
    case transport::Service::kRc:
    case transport::Service::kUc:
    case transport::Service::kUd:
    case transport::Service::kRawPacket:
      break;
  }
  return {.pd = given.pd,
          .send_cq = given.send_cq,
          .receive_cq = given.receive_cq,
          .srq = given.srq,
          .is_management = given.is_management};
}

bool are_complete(transport::Service service, const QpParts& parts) {
  if (service == transport::Service::kXrcTarget) return parts.xrcd != nullptr;
  if (parts.table != nullptr) {
    return service == transport::Service::kRawPacket && parts.pd != nullptr;
  }
  const bool receives = service != transport::Service::kXrcInitiator;
  return parts.pd != nullptr && parts.send_cq != nullptr &&
         (!receives || parts.receive_cq != nullptr);
}

bool are_of(const Context& context, const QpParts& parts) {
  const auto is_ours = [&context](const auto* part) {
    return part == nullptr || &part->context == &context;
  };
  return is_ours(parts.pd) && is_ours(parts.send_cq) && is_ours(parts.receive_cq) &&
         is_ours(parts.srq) && is_ours(parts.xrcd) && is_ours(parts.table);
}

// man ibv_create_qp: with an SRQ, the receive capabilities are ignored.
ibv_qp_cap needed_caps(ibv_qp_cap asked, const QpParts& parts) {
  if (parts.send_cq == nullptr) {
    asked.max_send_wr = asked.max_send_sge = asked.max_inline_data = 0;
  }
  if (parts.receive_cq == nullptr || parts.srq != nullptr) {
    asked.max_recv_wr = asked.max_recv_sge = 0;
  }
  return asked;
}

bool are_within_limits(const ibv_qp_cap& cap) {
  return cap.max_send_wr <= kWorkRequestsMax && cap.max_send_sge <= kSgesMax &&
         cap.max_inline_data <= kInlineBytesMax && cap.max_recv_wr <= kWorkRequestsMax &&
         cap.max_recv_sge <= kSgesMax;
}

int check(const Qp& qp) {
  const QpParts& parts = qp.parts;
  if (!are_complete(qp.service, parts) || !are_of(qp.context, parts)) return EINVAL;
  // The core checks a receive's memory against the QP's domain, which must be the poster's too.
  if (parts.srq != nullptr && parts.srq->pd.id != parts.pd->id) return EINVAL;
  // That of XRC is there for targets.
  if (parts.srq != nullptr && parts.srq->xrcd != nullptr) return EINVAL;
  return are_within_limits(qp.limits) ? 0 : EINVAL;
}

// The room of the elements serves inline data as well, as other devices have it; programs that ask
// for none and send a little inline all the same (rdma_xclient) count on it.
void grant_inline(ibv_qp_cap& cap) {
  const auto room = static_cast<std::uint32_t>(cap.max_send_sge * sizeof(memory::Sge));
  cap.max_inline_data = std::max(cap.max_inline_data, room);
}

constexpr std::size_t round_up_to_line(std::size_t bytes) {
  return (bytes + 63) & ~std::size_t{63};
}

// Where the parts of a QP's memory lie.
struct Layout {
  std::uint32_t send_stride, receive_stride;
  std::size_t send_bytes, receive_bytes, copy_bytes;

  // Never nothing, which no allocator could be asked for.
  [[nodiscard]] std::size_t total() const {
    return std::max(send_bytes + receive_bytes + copy_bytes, std::size_t{64});
  }
};

// Of the receives that come from shared queues.
std::uint32_t shared_sges_max(const Qp& qp) {
  if (qp.service == transport::Service::kXrcTarget) return kSgesMax;
  return qp.parts.srq == nullptr ? 0 : qp.parts.srq->max_sges;
}

Layout layout_of(const Qp& qp) {
  const ibv_qp_cap& cap = qp.limits;
  const std::size_t list =
      std::max({cap.max_send_sge * sizeof(memory::Sge), std::size_t{cap.max_inline_data},
                sizeof(std::uint64_t)});  // an atomic write's word
  Layout l{};
  l.send_stride = static_cast<std::uint32_t>(round_up_to_line(sizeof(transport::SendWqe) + list));
  l.send_bytes = std::size_t{transport::SendQueue::ring_slots(cap.max_send_wr)} * l.send_stride;
  l.receive_stride = receive_stride(cap.max_recv_sge);
  l.receive_bytes = round_up_to_line(receive_ring_bytes(cap.max_recv_wr, l.receive_stride));
  if (const std::uint32_t sges = shared_sges_max(qp); sges != 0) {
    l.copy_bytes = round_up_to_line(receive_stride(sges));
  }
  return l;
}

transport::QpInit init_of(Qp& qp, const Layout& l) {
  const std::span<std::byte> memory = qp.memory.bytes();
  const std::span<std::byte> copy = memory.subspan(l.send_bytes + l.receive_bytes, l.copy_bytes);
  const QpParts& parts = qp.parts;
  return {.number = {},
          .pd = parts.pd == nullptr ? PdId{} : parts.pd->id,
          .service = qp.service,
          .send_cq = parts.send_cq == nullptr ? nullptr : &parts.send_cq->queue,
          .receive_cq = parts.receive_cq == nullptr ? nullptr : &parts.receive_cq->queue,
          .srq = parts.srq == nullptr ? nullptr : &parts.srq->core,
          .xrcd = parts.xrcd == nullptr ? XrcdId{} : parts.xrcd->domain.id,
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
          .replay = {},  // modify_qp.cc
          .spread = parts.table == nullptr ? nullptr : &qp.spread,
          .user = &qp};
}

void use_others(const QpParts& parts, int change) {
  const auto count = [by = static_cast<std::uint32_t>(change)](std::atomic<std::uint32_t>& users) {
    users.fetch_add(by, std::memory_order_acq_rel);
  };
  if (parts.pd != nullptr) count(parts.pd->users);
  if (parts.send_cq != nullptr) count(parts.send_cq->users);
  if (parts.receive_cq != nullptr) count(parts.receive_cq->users);
  if (parts.srq != nullptr) count(parts.srq->users);
  if (parts.table != nullptr) count(parts.table->users);
}

}  // namespace

Qp::~Qp() {
  while (QpHandle* const handle = handles.pop_front()) delete handle;
  // Only of one that has ended without being destroyed some are left.
  while (transport::MulticastMember* const member = groups.pop_front()) {
    member->hook.unlink();
    delete member;
  }
}

Qp* create_qp(Context& context, const QpParts& parts, ibv_qp& handle,
              ibv_qp_init_attr& attributes) {
  Engine& engine = context.engine();
  if (engine.is_abandoned()) return failed(EIO);
  const auto service = service_of(attributes.qp_type);
  if (const int error = check_service(engine, service); error != 0) return failed(error);
  std::unique_ptr<Qp> qp(new (std::nothrow) Qp(context, used_parts(*service, parts)));
  if (qp == nullptr) return failed(ENOMEM);
  qp->service = *service;
  qp->limits = needed_caps(attributes.cap, qp->parts);
  if (const int error = check(*qp); error != 0) return failed(error);
  grant_inline(qp->limits);
  if (qp->parts.table != nullptr) {
    qp->spread = {.rule = qp->parts.hash, .queues = qp->parts.table->queues()};
  }
  qp->signals_all = attributes.sq_sig_all != 0;
  qp->doorbell.qp = &qp->core;
  auto* const holder = new (std::nothrow) QpHandle(handle, qp->parts.xrcd);
  if (holder == nullptr) return failed(ENOMEM);
  qp->handles.push_back(*holder);
  const Layout layout = layout_of(*qp);
  qp->memory = DomainMemory(qp->parts.pd, layout.total(), ResourceType::kQp);
  if (!qp->memory || !engine.quotas().qp.take()) return failed(ENOMEM);
  const std::optional<Qpn> number =
      qp->parts.is_management ? engine.allocate_management_qpn() : engine.allocate_qpn();
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
  qp->parts.xrcd = nullptr;  // its handles hold it, each its own
  use_others(qp->parts, 1);
  attributes.cap = qp->limits;
  qp->begin();
  return qp.release();
}

void Qp::leave_device() {
  Engine& engine = context.engine();
  std::unique_ptr<engine::PeerEntry> unused_peer;
  {
    Engine::Section section(engine);
    section.take_doorbells();
    for (auto* member = groups.front(); member != nullptr; member = groups.next(*member)) {
      section.detach(*member);
    }
    section.hca().destroy_qp(core);
    purge_completions(*this);
    unused_peer.reset(let_go_of_path(section, *this));
    silence(*this);
  }
  engine.release_qpn(core.number);
  engine.quotas().qp.give_back();
}

int destroy_qp(Qp* qp, ibv_qp& handle) {
  if (qp->is_live()) {
    if (!qp->groups.empty() || qp->flows.load(std::memory_order_acquire) != 0) return EBUSY;
    if (close_shared(*qp, handle)) return 0;
    // Nothing else is owed to anybody; and memory that receives were posted with may have gone, as
    // UCX has it.
    if (transport::is_reliable(qp->core.service)) qp->context.engine().linger(qp->core);
    qp->end();
    wait_for_last(*qp);
  } else if (!drop_handle(*qp, handle)) {
    return 0;
  }
  use_others(qp->parts, -1);
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
  const auto handle_of = [](auto* part) { return part == nullptr ? nullptr : &part->handle; };
  initial = {.qp_context = nullptr,  // of the handle that is asked
             .send_cq = handle_of(qp.parts.send_cq),
             .recv_cq = handle_of(qp.parts.receive_cq),
             .srq = handle_of(qp.parts.srq),
             .cap = qp.limits,
             .qp_type = static_cast<ibv_qp_type>(qp.service),
             .sq_sig_all = qp.signals_all ? 1 : 0};
}

}  // namespace uroce::verbs
