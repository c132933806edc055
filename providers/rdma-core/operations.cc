// SPDX-License-Identifier: BSD-2-Clause
// The operations of a context: from libibverbs' objects to ours, and nothing else.
#include <cerrno>

#include "objects.h"

namespace uroce::provider {
namespace {

template <typename Public>
void init_waiting(Public& object) {
  pthread_mutex_init(&object.mutex, nullptr);
  pthread_cond_init(&object.cond, nullptr);
}
template <typename Public>
void end_waiting(Public& object) {
  pthread_mutex_destroy(&object.mutex);
  pthread_cond_destroy(&object.cond);
}

// --- Device and port -----------------------------------------------------------------------------

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  return verbs::query_device_ex(*object_of(context), *attributes, size);
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) {
  return verbs::query_port(*object_of(context), port, *attributes);
}

// --- Protection domains and memory regions -------------------------------------------------------

ibv_pd* alloc_pd(ibv_context* context) {
  auto holder = allocate<PdHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::alloc_pd(*object_of(context));
  if (holder->object == nullptr) return nullptr;
  holder->base.context = context;
  return &holder.release()->base;
}

int dealloc_pd(ibv_pd* pd) {
  if (const int error = verbs::dealloc_pd(object_of(pd)); error != 0) return error;
  std::free(&holder_of(pd));
  return 0;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  auto holder = allocate<MrHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::reg_mr(*object_of(pd), address, length, iova, access);
  if (holder->object == nullptr) return nullptr;
  verbs_mr& mr = holder.release()->base;
  mr.mr_type = IBV_MR_TYPE_MR;
  mr.access = access;
  const std::uint32_t key = holder_of(&mr).object->region.key;
  mr.public_mr = {.context = pd->context,
                  .pd = pd,
                  .addr = address,
                  .length = length,
                  .handle = key,
                  .lkey = key,
                  .rkey = key};
  return &mr.public_mr;
}

int rereg_mr(verbs_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  const int error = verbs::rereg_mr(*object_of(mr), flags, object_of(pd), address, length, access);
  if (error == 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) mr->access = access;
  return error;
}

int dereg_mr(verbs_mr* mr) {
  verbs::dereg_mr(object_of(mr));
  std::free(&holder_of(mr));
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

int resize_cq(ibv_cq* cq, int entries) { return verbs::resize_cq(*object_of(cq), entries); }

int destroy_cq(ibv_cq* cq) {
  if (const int error = verbs::destroy_cq(object_of(cq)); error != 0) return error;
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

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* initial) {
  auto holder = allocate<SrqHolder>();
  if (holder == nullptr) return nullptr;
  ibv_srq& srq = holder->base.srq;
  holder->object = verbs::create_srq(*object_of(pd), srq, initial->attr);
  if (holder->object == nullptr) return nullptr;
  holder->base.srq_type = IBV_SRQT_BASIC;
  srq.context = pd->context;
  srq.srq_context = initial->srq_context;
  srq.pd = pd;
  init_waiting(srq);
  return &holder.release()->base.srq;
}

int modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  return verbs::modify_srq(*object_of(srq), *attributes, mask);
}

int query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  verbs::query_srq(*object_of(srq), *attributes);
  return 0;
}

int destroy_srq(ibv_srq* srq) {
  if (const int error = verbs::destroy_srq(object_of(srq)); error != 0) return error;
  end_waiting(*srq);
  std::free(&holder_of(srq));
  return 0;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return verbs::post_srq_recv(*holder_of(srq).object, request, bad);
}

// --- Queue pairs ---------------------------------------------------------------------------------

}  // namespace

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* initial) {
  auto holder = allocate<QpHolder>();
  if (holder == nullptr) return nullptr;
  ibv_qp& qp = holder->base.qp;
  // Waited on by a destroy; events may come as soon as the QP exists.
  init_waiting(qp);
  holder->object = verbs::create_qp(*object_of(pd), qp, *initial, object_of(initial->send_cq),
                                    object_of(initial->recv_cq), object_of(initial->srq));
  if (holder->object == nullptr) {
    end_waiting(qp);
    return nullptr;
  }
  qp.context = pd->context;
  qp.qp_context = initial->qp_context;
  qp.pd = pd;
  qp.send_cq = initial->send_cq;
  qp.recv_cq = initial->recv_cq;
  qp.srq = initial->srq;
  qp.qp_num = qp.handle = holder->object->core.number.value;
  qp.state = IBV_QPS_RESET;
  qp.qp_type = initial->qp_type;
  return &holder.release()->base.qp;
}

namespace {

int modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return verbs::modify_qp(*object_of(qp), *attributes, mask);
}

int query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int /*mask*/, ibv_qp_init_attr* initial) {
  verbs::query_qp(*object_of(qp), *attributes, *initial);
  qp->state = attributes->qp_state;
  return 0;
}

int destroy_qp(ibv_qp* qp) {
  if (const int error = verbs::destroy_qp(object_of(qp)); error != 0) return error;
  end_waiting(*qp);
  std::free(&holder_of(qp));
  return 0;
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  return verbs::post_send(*holder_of(qp).object, request, bad);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return verbs::post_recv(*holder_of(qp).object, request, bad);
}

void free_context(ibv_context* context) {
  ContextHolder& holder = holder_of(context);
  verbs_uninit_context(&holder.base);
  delete holder.object;
  std::free(&holder);
}

verbs_context_ops make_ops() {
  verbs_context_ops ops{};
  ops.alloc_pd = alloc_pd;
  ops.cq_event = cq_event;
  ops.create_ah = create_ah;
  ops.create_cq = create_cq;
  ops.create_qp = create_qp;
  ops.create_srq = create_srq;
  ops.dealloc_pd = dealloc_pd;
  ops.dereg_mr = dereg_mr;
  ops.destroy_ah = destroy_ah;
  ops.destroy_cq = destroy_cq;
  ops.destroy_qp = destroy_qp;
  ops.destroy_srq = destroy_srq;
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
  add_extended_cq_ops(ops);
  add_extended_qp_ops(ops);
  return ops;
}

}  // namespace

const verbs_context_ops kContextOps = make_ops();

}  // namespace uroce::provider
