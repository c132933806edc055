// SPDX-License-Identifier: BSD-2-Clause
// Extended queue pairs: what ibv_create_qp_ex may ask for, and the functions by which their work
// requests are posted (man ibv_wr_post).
#include <algorithm>
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
void wr_send_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
  verbs::wr_send_invalidate(queue_of(qp), head_of(qp), rkey);
}
void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  verbs::wr_bind_window(queue_of(qp), head_of(qp), mw, rkey, *info);
}
void wr_local_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
  verbs::wr_local_invalidate(queue_of(qp), head_of(qp), rkey);
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

void wr_atomic_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, const void* word) {
  verbs::wr_atomic_write(queue_of(qp), head_of(qp), RemoteAddress{rkey, address}, word);
}

// --- Setters -------------------------------------------------------------------------------------

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  verbs::wr_set_target(queue_of(qp), ah, qpn, qkey);
}
void wr_set_xrc_srqn(ibv_qp_ex* qp, std::uint32_t number) {
  verbs::wr_set_srq(queue_of(qp), number);
}
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

void set_builders(ibv_qp_ex& qp, std::uint64_t operations) {
  const auto set = [operations](std::uint64_t flag, auto& member, auto builder) {
    if ((operations & flag) != 0) member = builder;
  };
  set(IBV_QP_EX_WITH_SEND, qp.wr_send, wr_send);
  set(IBV_QP_EX_WITH_SEND_WITH_IMM, qp.wr_send_imm, wr_send_imm);
  set(IBV_QP_EX_WITH_SEND_WITH_INV, qp.wr_send_inv, wr_send_inv);
  set(IBV_QP_EX_WITH_BIND_MW, qp.wr_bind_mw, wr_bind_mw);
  set(IBV_QP_EX_WITH_LOCAL_INV, qp.wr_local_inv, wr_local_inv);
  set(IBV_QP_EX_WITH_RDMA_WRITE, qp.wr_rdma_write, wr_rdma_write);
  set(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, qp.wr_rdma_write_imm, wr_rdma_write_imm);
  set(IBV_QP_EX_WITH_RDMA_READ, qp.wr_rdma_read, wr_rdma_read);
  set(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, qp.wr_atomic_cmp_swp, wr_atomic_cmp_swp);
  set(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, qp.wr_atomic_fetch_add, wr_atomic_fetch_add);
  set(IBV_QP_EX_WITH_ATOMIC_WRITE, qp.wr_atomic_write, wr_atomic_write);
}

void set_functions(ibv_qp_ex& qp, std::uint64_t operations) {
  set_builders(qp, operations);
  qp.wr_start = wr_start;
  qp.wr_complete = wr_complete;
  qp.wr_abort = wr_abort;
  qp.wr_set_ud_addr = wr_set_ud_addr;
  qp.wr_set_xrc_srqn = wr_set_xrc_srqn;
  qp.wr_set_sge = wr_set_sge;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_set_inline_data = wr_set_inline_data;
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
}

// --- Creation ------------------------------------------------------------------------------------

int check(const ibv_qp_init_attr_ex& a) {
  constexpr std::uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                                   IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
                                   IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH |
                                   IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((a.comp_mask & ~kKnown) != 0) return EOPNOTSUPP;
  // Nothing of these is for a queue pair whose packets the transport makes.
  if ((a.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && a.create_flags != 0) return EOPNOTSUPP;
  if ((a.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0 && a.max_tso_header != 0) {
    return EOPNOTSUPP;
  }
  if ((a.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0) return 0;
  return (a.send_ops_flags & ~verbs::send_operations(a.qp_type)) == 0 ? 0 : EOPNOTSUPP;
}

// Receive side scaling: an indirection table and a hash, and no queue beside it. 0, or an errno.
int to_rss(const ibv_qp_init_attr_ex& a, Rss& rss) {
  constexpr std::uint32_t kBoth = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  if ((a.comp_mask & kBoth) != kBoth || a.rwq_ind_tbl == nullptr) return EINVAL;
  if (a.cap.max_recv_wr != 0 || a.cap.max_recv_sge != 0 || a.srq != nullptr) return EINVAL;
  if (a.cap.max_send_wr != 0 || a.send_cq != nullptr) return EOPNOTSUPP;
  const ibv_rx_hash_conf& conf = a.rx_hash_conf;
  if (conf.rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ) return EOPNOTSUPP;
  if ((conf.rx_hash_fields_mask & ~std::uint64_t{steering::hash_field::kAll}) != 0) {
    return EOPNOTSUPP;
  }
  if (conf.rx_hash_key_len != rss.hash.key.size() || conf.rx_hash_key == nullptr) return EINVAL;
  std::copy_n(conf.rx_hash_key, rss.hash.key.size(), rss.hash.key.begin());
  rss.hash.fields = static_cast<std::uint32_t>(conf.rx_hash_fields_mask);
  rss.table = object_of(a.rwq_ind_tbl);
  return 0;
}

// The extended attributes begin as the others do.
static_assert(offsetof(ibv_qp_init_attr_ex, cap) == offsetof(ibv_qp_init_attr, cap) &&
              offsetof(ibv_qp_init_attr_ex, qp_type) == offsetof(ibv_qp_init_attr, qp_type) &&
              offsetof(ibv_qp_init_attr_ex, sq_sig_all) == offsetof(ibv_qp_init_attr, sq_sig_all));

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  if (const int error = check(*attributes); error != 0) return verbs::failed(error);
  constexpr std::uint32_t kRss = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  const bool has_rss = (attributes->comp_mask & kRss) != 0;
  Rss rss{};
  if (has_rss) {
    if (const int error = to_rss(*attributes, rss); error != 0) return verbs::failed(error);
  }
  const bool has_pd = (attributes->comp_mask & IBV_QP_INIT_ATTR_PD) != 0;
  const bool has_xrcd = (attributes->comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0;
  ibv_qp* const qp = make_qp(
      context, has_pd ? attributes->pd : nullptr, has_xrcd ? extended(attributes->xrcd) : nullptr,
      reinterpret_cast<ibv_qp_init_attr*>(attributes), has_rss ? &rss : nullptr);
  if (qp == nullptr || (attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0) return qp;
  verbs_qp& extended = holder_of(qp).base;
  // All that its type has, asked for or not: nothing is the faster for a function that is missing.
  set_functions(extended.qp_ex, verbs::send_operations(attributes->qp_type));
  extended.comp_mask |= VERBS_QP_EX;
  return qp;
}

int query_ece(ibv_qp* /*qp*/, ibv_ece* ece) {
  verbs::query_ece(*ece);
  return 0;
}
int set_ece(ibv_qp* /*qp*/, ibv_ece* ece) { return told(verbs::set_ece(*ece)); }

}  // namespace

void add_extended_qp_ops(verbs_context_ops& ops) {
  ops.create_qp_ex = create_qp_ex;
  ops.query_ece = query_ece;
  ops.set_ece = set_ece;
}

}  // namespace uroce::provider
