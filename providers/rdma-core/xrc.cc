// SPDX-License-Identifier: BSD-2-Clause
// XRC: domains, their shared receive queues, and targets that several open.
#include <cerrno>

#include "objects.h"

namespace uroce::provider {
namespace {

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attributes) {
  auto holder = allocate<XrcdHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::open_xrcd(*object_of(context), *attributes);
  if (holder->object == nullptr) return nullptr;
  holder->base.xrcd.context = context;
  return &holder.release()->base.xrcd;
}

int close_xrcd(ibv_xrcd* xrcd) {
  XrcdHolder& holder = holder_of(extended(xrcd));
  if (const int error = verbs::close_xrcd(holder.object); error != 0) return told(error);
  std::free(&holder);
  return 0;
}

ibv_srq* create_xrc_srq(ibv_srq_init_attr_ex& a) {
  constexpr std::uint32_t kNeeded =
      IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  if ((a.comp_mask & kNeeded) != kNeeded || a.pd == nullptr) return verbs::failed(EINVAL);
  auto holder = allocate<SrqHolder>();
  if (holder == nullptr) return nullptr;
  verbs_srq& srq = holder->base;
  srq.xrcd = extended(a.xrcd);
  srq.cq = a.cq;
  holder->object = verbs::create_xrc_srq(*object_of(a.pd), srq.srq, a.attr, object_of(srq.xrcd),
                                         object_of(a.cq));
  if (holder->object != nullptr) srq.srq_num = holder->object->core.number.value;
  return publish(std::move(holder), a.pd, a.srq_context, IBV_SRQT_XRC);
}

// libibverbs itself answers for what is no more than a basic one.
ibv_srq* create_srq_ex(ibv_context* /*context*/, ibv_srq_init_attr_ex* attributes) {
  constexpr std::uint32_t kKnown =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  if ((attributes->comp_mask & ~kKnown) != 0) return verbs::failed(EOPNOTSUPP);
  const bool is_xrc =
      (attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && attributes->srq_type == IBV_SRQT_XRC;
  return is_xrc ? create_xrc_srq(*attributes) : verbs::failed(EOPNOTSUPP);
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
  if (holder_of(srq).base.srq_type != IBV_SRQT_XRC) return told(EINVAL);
  *number = holder_of(srq).base.srq_num;
  return 0;
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attributes) {
  constexpr std::uint32_t kNeeded =
      IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  constexpr std::uint32_t kKnown = kNeeded | IBV_QP_OPEN_ATTR_CONTEXT;
  if ((attributes->comp_mask & ~kKnown) != 0) return verbs::failed(EOPNOTSUPP);
  const bool is_named = (attributes->comp_mask & kNeeded) == kNeeded &&
                        attributes->xrcd != nullptr && attributes->qp_type == IBV_QPT_XRC_RECV;
  if (!is_named) return verbs::failed(EINVAL);
  auto holder = allocate<QpHolder>();
  if (holder == nullptr) return nullptr;
  verbs_xrcd* const xrcd = extended(attributes->xrcd);
  ibv_qp& qp = holder->base.qp;
  init_waiting(qp);
  holder->object = verbs::open_qp(*object_of(xrcd), qp, attributes->qp_num);
  if (holder->object == nullptr) {
    end_waiting(qp);
    return nullptr;
  }
  const bool has_context = (attributes->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0;
  qp.context = context;
  qp.qp_context = has_context ? attributes->qp_context : nullptr;
  qp.qp_num = qp.handle = attributes->qp_num;
  qp.qp_type = IBV_QPT_XRC_RECV;
  holder->base.xrcd = xrcd;
  holder->base.comp_mask |= VERBS_QP_XRCD;
  return &holder.release()->base.qp;
}

}  // namespace

void add_xrc_ops(verbs_context_ops& ops) {
  ops.close_xrcd = close_xrcd;
  ops.create_srq_ex = create_srq_ex;
  ops.get_srq_num = get_srq_num;
  ops.open_qp = open_qp;
  ops.open_xrcd = open_xrcd;
}

}  // namespace uroce::provider
