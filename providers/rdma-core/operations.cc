// SPDX-License-Identifier: BSD-2-Clause
// The operations of a context: from libibverbs' objects to ours, and nothing else.
#include <cerrno>

#include "objects.h"

namespace uroce::provider {
namespace {

// --- Device and port -----------------------------------------------------------------------------

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return told(EINVAL);
  return told(verbs::query_device_ex(*object_of(context), *attributes, size));
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) {
  return told(verbs::query_port(*object_of(context), port, *attributes));
}

// --- Protection domains and memory regions -------------------------------------------------------

ibv_pd* alloc_pd(ibv_context* context) {
  auto holder = allocate<PdHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::alloc_pd(*object_of(context));
  if (holder->object == nullptr) return nullptr;
  holder->base.context = context;
  holder->base.handle = holder->object->id.value;
  return &holder.release()->base;
}

int dealloc_pd(ibv_pd* pd) {
  if (const int error = verbs::dealloc_pd(object_of(pd)); error != 0) return told(error);
  std::free(&holder_of(pd));
  return 0;
}

}  // namespace

// `mr` as the application sees it; null if it is, or without memory.
ibv_mr* publish(ibv_pd* pd, verbs::Mr* mr, void* address, std::size_t length, int access) {
  if (mr == nullptr) return nullptr;
  auto holder = allocate<MrHolder>();
  if (holder == nullptr) {
    static_cast<void>(verbs::dereg_mr(mr));  // nothing can be bound to it yet
    return nullptr;
  }
  holder->object = mr;
  holder->base.mr_type = IBV_MR_TYPE_MR;
  holder->base.access = access;
  const std::uint32_t key = mr->region.key;
  holder->base.public_mr = {.context = pd->context,
                            .pd = pd,
                            .addr = address,
                            .length = length,
                            .handle = key,
                            .lkey = key,
                            .rkey = key};
  return &holder.release()->base.public_mr;
}

namespace {

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  verbs::Mr* const mr = verbs::reg_mr(*object_of(pd), address, length, iova, access);
  return publish(pd, mr, address, length, access);
}

int rereg_mr(verbs_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  const int error = verbs::rereg_mr(*object_of(mr), flags, object_of(pd), address, length, access);
  if (error == 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) mr->access = access;
  return told(error);
}

int dereg_mr(verbs_mr* mr) {
  if (const int error = verbs::dereg_mr(object_of(mr)); error != 0) return told(error);
  std::free(&holder_of(mr));
  return 0;
}

// --- Memory windows ------------------------------------------------------------------------------

verbs::Mw& window_of(ibv_mw* mw) { return static_cast<verbs::Mw&>(*mw); }

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  return verbs::alloc_mw(*object_of(pd), *pd, type);
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  return verbs::bind_mw(*object_of(qp), window_of(mw), *bind);
}

int dealloc_mw(ibv_mw* mw) {
  verbs::dealloc_mw(&window_of(mw));
  return 0;
}

// --- Address handles -----------------------------------------------------------------------------

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  return verbs::create_ah(*object_of(pd), *attributes);
}

int destroy_ah(ibv_ah* ah) {
  verbs::destroy_ah(&verbs::ah_of(*ah));
  return 0;
}

// --- Completion queues ---------------------------------------------------------------------------

// libibverbs fills in the public part and makes its mutex when we return.
ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) {
  auto holder = allocate<CqHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::create_cq(*object_of(context), holder->base.cq, entries, channel, vector);
  if (holder->object == nullptr) return nullptr;
  return &holder.release()->base.cq;
}

int resize_cq(ibv_cq* cq, int entries) { return told(verbs::resize_cq(*object_of(cq), entries)); }

int destroy_cq(ibv_cq* cq) {
  if (const int error = verbs::destroy_cq(object_of(cq)); error != 0) return told(error);
  end_waiting(*cq);
  std::free(&holder_of(cq));
  return 0;
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  return verbs::poll_cq(*holder_of(cq).object, count, completions);
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  return verbs::req_notify_cq(*object_of(cq), solicited_only);
}

void cq_event(ibv_cq* cq) { verbs::on_notification_read(*object_of(cq)); }

// --- Shared receive queues -----------------------------------------------------------------------

}  // namespace

ibv_srq* publish(std::unique_ptr<SrqHolder, Free> holder, ibv_pd* pd, void* context,
                 ibv_srq_type type) {
  if (holder->object == nullptr) return nullptr;
  ibv_srq& srq = holder->base.srq;
  holder->base.srq_type = type;
  srq.context = pd->context;
  srq.srq_context = context;
  srq.pd = pd;
  init_waiting(srq);
  return &holder.release()->base.srq;
}

namespace {

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* initial) {
  auto holder = allocate<SrqHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::create_srq(*object_of(pd), holder->base.srq, initial->attr);
  return publish(std::move(holder), pd, initial->srq_context, IBV_SRQT_BASIC);
}

int modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  return told(verbs::modify_srq(*object_of(srq), *attributes, mask));
}

int query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  verbs::query_srq(*object_of(srq), *attributes);
  return 0;
}

int destroy_srq(ibv_srq* srq) {
  if (const int error = verbs::destroy_srq(object_of(srq)); error != 0) return told(error);
  end_waiting(*srq);
  std::free(&holder_of(srq));
  return 0;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return verbs::post_srq_recv(*holder_of(srq).object, request, bad);
}

// --- Queue pairs ---------------------------------------------------------------------------------

}  // namespace

ibv_qp* make_qp(ibv_context* context, ibv_pd* pd, verbs_xrcd* xrcd, ibv_qp_init_attr* initial,
                const Rss* rss) {
  auto holder = allocate<QpHolder>();
  if (holder == nullptr) return nullptr;
  ibv_qp& qp = holder->base.qp;
  // Waited on by a destroy; events may come as soon as the QP exists.
  init_waiting(qp);
  verbs::QpParts parts{.pd = object_of(pd),
                       .send_cq = object_of(initial->send_cq),
                       .receive_cq = object_of(initial->recv_cq),
                       .srq = object_of(initial->srq),
                       .xrcd = object_of(xrcd)};
  if (rss != nullptr) {
    parts.table = rss->table;
    parts.hash = rss->hash;
  }
  holder->object = verbs::create_qp(*object_of(context), parts, qp, *initial);
  if (holder->object == nullptr) {
    end_waiting(qp);
    return nullptr;
  }
  qp.context = context;
  qp.qp_context = initial->qp_context;
  qp.pd = pd;
  qp.send_cq = initial->send_cq;
  qp.recv_cq = initial->recv_cq;
  qp.srq = initial->srq;
  qp.qp_num = qp.handle = holder->object->core.number.value;
  qp.state = IBV_QPS_RESET;
  qp.qp_type = initial->qp_type;
  if (xrcd != nullptr) {
    holder->base.xrcd = xrcd;
    holder->base.comp_mask |= VERBS_QP_XRCD;
  }
  return &holder.release()->base.qp;
}

namespace {

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* initial) {
  return make_qp(pd->context, pd, nullptr, initial);
}

int modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return told(verbs::modify_qp(*object_of(qp), *attributes, mask));
}

int query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int /*mask*/, ibv_qp_init_attr* initial) {
  verbs::query_qp(*object_of(qp), *attributes, *initial);
  initial->qp_context = qp->qp_context;
  qp->state = attributes->qp_state;
  return 0;
}

int destroy_qp(ibv_qp* qp) {
  if (const int error = verbs::destroy_qp(object_of(qp), *qp); error != 0) return told(error);
  end_waiting(*qp);
  std::free(&holder_of(qp));
  return 0;
}

// RoCE has no LIDs.
int attach_mcast(ibv_qp* qp, const ibv_gid* group, std::uint16_t /*lid*/) {
  return told(verbs::attach_multicast(*object_of(qp), *group));
}
int detach_mcast(ibv_qp* qp, const ibv_gid* group, std::uint16_t /*lid*/) {
  return told(verbs::detach_multicast(*object_of(qp), *group));
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  return verbs::post_send(*holder_of(qp).object, request, bad);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return verbs::post_recv(*holder_of(qp).object, request, bad);
}

void free_context(ibv_context* context) {
  ContextHolder& holder = holder_of(context);
  forget(holder);
  verbs::Context::close(holder.object);  // before its descriptor is somebody else's
  verbs_uninit_context(&holder.base);
  std::free(&holder);
}

verbs_context_ops make_ops() {
  verbs_context_ops ops{};
  ops.alloc_mw = alloc_mw;
  ops.alloc_pd = alloc_pd;
  ops.attach_mcast = attach_mcast;
  ops.bind_mw = bind_mw;
  ops.cq_event = cq_event;
  ops.create_ah = create_ah;
  ops.create_cq = create_cq;
  ops.create_qp = create_qp;
  ops.create_srq = create_srq;
  ops.dealloc_mw = dealloc_mw;
  ops.dealloc_pd = dealloc_pd;
  ops.dereg_mr = dereg_mr;
  ops.destroy_ah = destroy_ah;
  ops.destroy_cq = destroy_cq;
  ops.destroy_qp = destroy_qp;
  ops.destroy_srq = destroy_srq;
  ops.detach_mcast = detach_mcast;
  ops.free_context = free_context;
  ops.modify_qp = modify_qp;
  ops.modify_srq = modify_srq;
  ops.poll_cq = poll_cq;
  ops.post_recv = post_recv;
  ops.post_send = post_send;
  ops.post_srq_recv = post_srq_recv;
  ops.query_device_ex = query_device_ex;
  ops.query_port = query_port;
  ops.query_qp = query_qp;
  ops.query_srq = query_srq;
  ops.reg_mr = reg_mr;
  ops.req_notify_cq = req_notify_cq;
  ops.rereg_mr = rereg_mr;
  ops.resize_cq = resize_cq;
  add_device_memory_ops(ops);
  add_domain_ops(ops);
  add_extended_cq_ops(ops);
  add_extended_mr_ops(ops);
  add_extended_qp_ops(ops);
  add_raw_packet_ops(ops);
  add_xrc_ops(ops);
  add_import_ops(ops);
  return ops;
}

}  // namespace

const verbs_context_ops kContextOps = make_ops();

}  // namespace uroce::provider
