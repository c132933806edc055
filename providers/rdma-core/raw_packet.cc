// SPDX-License-Identifier: BSD-2-Clause
// What belongs to raw packets: flow steering, receive work queues and their indirection tables.
#include <cerrno>

#include "objects.h"

namespace uroce::provider {
namespace {

// --- Flow steering -------------------------------------------------------------------------------

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes) {
  auto holder = allocate<FlowHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::create_flow(*object_of(qp), *attributes);
  if (holder->object == nullptr) return nullptr;
  holder->base.context = qp->context;
  return &holder.release()->base;
}

int destroy_flow(ibv_flow* flow) {
  FlowHolder& holder = holder_of(flow);
  verbs::destroy_flow(holder.object);
  std::free(&holder);
  return 0;
}

// --- Receive work queues -------------------------------------------------------------------------

int post_wq_recv(ibv_wq* wq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return verbs::post_wq_recv(*holder_of(wq).object, request, bad);
}

// libibverbs fills in the rest of the public part when we return.
ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attributes) {
  auto holder = allocate<WqHolder>();
  if (holder == nullptr) return nullptr;
  ibv_wq& wq = holder->base;
  holder->object = verbs::create_wq(*object_of(context), wq, object_of(attributes->pd),
                                    object_of(attributes->cq), *attributes);
  if (holder->object == nullptr) return nullptr;
  wq.context = context;
  wq.pd = attributes->pd;
  wq.cq = attributes->cq;
  wq.wq_num = wq.handle = holder->object->core.number.value;
  wq.state = IBV_WQS_RESET;
  wq.wq_type = attributes->wq_type;
  wq.post_recv = post_wq_recv;
  return &holder.release()->base;
}

int modify_wq(ibv_wq* wq, ibv_wq_attr* attributes) {
  const int error = verbs::modify_wq(*object_of(wq), *attributes);
  if (error == 0) wq->state = verbs::state_of(*object_of(wq));
  return told(error);
}

int destroy_wq(ibv_wq* wq) {
  if (const int error = verbs::destroy_wq(object_of(wq)); error != 0) return told(error);
  end_waiting(*wq);
  std::free(&holder_of(wq));
  return 0;
}

// --- Indirection tables --------------------------------------------------------------------------

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context,
                                        ibv_rwq_ind_table_init_attr* attributes) {
  auto holder = allocate<RwqTableHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::create_rwq_table(*object_of(context), *attributes,
                                           [](ibv_wq* wq) { return object_of(wq); });
  if (holder->object == nullptr) return nullptr;
  holder->base.context = context;
  return &holder.release()->base;
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* table) {
  if (const int error = verbs::destroy_rwq_table(object_of(table)); error != 0) return told(error);
  std::free(&holder_of(table));
  return 0;
}

}  // namespace

void add_raw_packet_ops(verbs_context_ops& ops) {
  ops.create_flow = create_flow;
  ops.create_rwq_ind_table = create_rwq_ind_table;
  ops.create_wq = create_wq;
  ops.destroy_flow = destroy_flow;
  ops.destroy_rwq_ind_table = destroy_rwq_ind_table;
  ops.destroy_wq = destroy_wq;
  ops.modify_wq = modify_wq;
}

}  // namespace uroce::provider
