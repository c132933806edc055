// SPDX-License-Identifier: BSD-2-Clause
// Extended queue pairs: what ibv_create_qp_ex may ask for, and the functions by which their work
// requests are posted (man ibv_wr_post).
#include <cerrno>
#include <cstddef>

#include "objects.h"

namespace uroce::provider {
namespace {

using verbs::RemoteAddress;

verbs::Qp& queue_of(ibv_qp_ex* qp) { return *holder_of(&qp->qp_base).object; }
verbs::SendHead head_of(const ibv_qp_ex* qp) { return {.wr_id = qp->wr_id, .flags = qp->wr_flags}; }

// --- The region ----------------------------------------------------------------------------------

void wr_start(ibv_qp_ex* qp) { verbs::wr_start(queue_of(qp)); }
int wr_complete(ibv_qp_ex* qp) { return verbs::wr_complete(queue_of(qp)); }
void wr_abort(ibv_qp_ex* qp) { verbs::wr_abort(queue_of(qp)); }

// --- Builders ------------------------------------------------------------------------------------

void wr_send(ibv_qp_ex* qp) { verbs::wr_send(queue_of(qp), head_of(qp)); }
void wr_send_imm(ibv_qp_ex* qp, __be32 immediate) {
  verbs::wr_send_immediate(queue_of(qp), head_of(qp), immediate);
}
void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  verbs::wr_write(queue_of(qp), head_of(qp), RemoteAddress{rkey, address});
}
void wr_rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
  verbs::wr_write_immediate(queue_of(qp), head_of(qp), RemoteAddress{rkey, address}, immediate);
}
void wr_rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  verbs::wr_read(queue_of(qp), head_of(qp), RemoteAddress{rkey, address});
}
void wr_atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                       std::uint64_t compare, std::uint64_t swap) {
  verbs::wr_compare_swap(queue_of(qp), head_of(qp), RemoteAddress{rkey, address}, compare, swap);
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                         std::uint64_t add) {
  verbs::wr_fetch_add(queue_of(qp), head_of(qp), RemoteAddress{rkey, address}, add);
}

// --- Setters -------------------------------------------------------------------------------------

void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  verbs::wr_set_sge(queue_of(qp), lkey, address, length);
}
void wr_set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  verbs::wr_set_sge_list(queue_of(qp), {list, count});
}
void wr_set_inline_data(ibv_qp_ex* qp, void* data, std::size_t length) {
  verbs::wr_set_inline_data(queue_of(qp), data, length);
}
void wr_set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  verbs::wr_set_inline_data_list(queue_of(qp), {list, count});
}

void set_functions(ibv_qp_ex& qp) {
  qp.wr_start = wr_start;
  qp.wr_complete = wr_complete;
  qp.wr_abort = wr_abort;
  qp.wr_send = wr_send;
  qp.wr_send_imm = wr_send_imm;
  qp.wr_rdma_write = wr_rdma_write;
  qp.wr_rdma_write_imm = wr_rdma_write_imm;
  qp.wr_rdma_read = wr_rdma_read;
  qp.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  qp.wr_atomic_fetch_add = wr_atomic_fetch_add;
  qp.wr_set_sge = wr_set_sge;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_set_inline_data = wr_set_inline_data;
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
}

// --- Creation ------------------------------------------------------------------------------------

int check(const ibv_qp_init_attr_ex& a) {
  constexpr std::uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                                   IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
                                   IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((a.comp_mask & ~kKnown) != 0) return EOPNOTSUPP;
  if ((a.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || a.pd == nullptr) return EINVAL;
  // Nothing of these is for a queue pair whose packets the transport makes.
  if ((a.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && a.create_flags != 0) return EOPNOTSUPP;
  if ((a.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0 && a.max_tso_header != 0) {
    return EOPNOTSUPP;
  }
  if ((a.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0) return 0;
  return (a.send_ops_flags & ~verbs::send_operations(a.qp_type)) == 0 ? 0 : EOPNOTSUPP;
}

// The extended attributes begin as the others do.
static_assert(offsetof(ibv_qp_init_attr_ex, cap) == offsetof(ibv_qp_init_attr, cap) &&
              offsetof(ibv_qp_init_attr_ex, qp_type) == offsetof(ibv_qp_init_attr, qp_type) &&
              offsetof(ibv_qp_init_attr_ex, sq_sig_all) == offsetof(ibv_qp_init_attr, sq_sig_all));

ibv_qp* create_qp_ex(ibv_context* /*context*/, ibv_qp_init_attr_ex* attributes) {
  if (const int error = check(*attributes); error != 0) {
    errno = error;
    return nullptr;
  }
  ibv_qp* const qp = create_qp(attributes->pd, reinterpret_cast<ibv_qp_init_attr*>(attributes));
  if (qp == nullptr || (attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0) return qp;
  verbs_qp& extended = holder_of(qp).base;
  set_functions(extended.qp_ex);
  extended.comp_mask |= VERBS_QP_EX;
  return qp;
}

}  // namespace

void add_extended_qp_ops(verbs_context_ops& ops) { ops.create_qp_ex = create_qp_ex; }

}  // namespace uroce::provider
