// SPDX-License-Identifier: BSD-2-Clause
// Extended completion queues: the functions by which an application polls one and reads the fields
// of the current completion (man ibv_create_cq_ex), and what belongs to its clock.
#include <cerrno>

#include "objects.h"

namespace uroce::provider {
namespace {

verbs::Cq& queue_of(ibv_cq_ex* cq) { return *holder_of(ibv_cq_ex_to_cq(cq)).object; }
const transport::Cqe& current(ibv_cq_ex* cq) { return queue_of(cq).batch.entry; }

// --- The batch -----------------------------------------------------------------------------------

int show(ibv_cq_ex* cq, int error) {
  if (error != 0) return error;
  const transport::Cqe& entry = current(cq);
  cq->wr_id = entry.wr_id;
  cq->status = static_cast<ibv_wc_status>(entry.status);
  return 0;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  if (attributes != nullptr && attributes->comp_mask != 0) return EINVAL;
  return show(cq, verbs::start_poll(queue_of(cq)));
}
int next_poll(ibv_cq_ex* cq) { return show(cq, verbs::next_poll(queue_of(cq))); }
void end_poll(ibv_cq_ex* cq) { verbs::end_poll(queue_of(cq)); }

// --- The fields ----------------------------------------------------------------------------------

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return static_cast<ibv_wc_opcode>(current(cq).opcode); }
std::uint32_t read_vendor_err(ibv_cq_ex* cq) { return current(cq).vendor_error; }
std::uint32_t read_byte_len(ibv_cq_ex* cq) { return current(cq).byte_count; }
__be32 read_imm_data(ibv_cq_ex* cq) { return current(cq).immediate; }
std::uint32_t read_qp_num(ibv_cq_ex* cq) { return current(cq).qpn.value; }
std::uint32_t read_src_qp(ibv_cq_ex* cq) { return current(cq).source_qpn.value; }
unsigned read_wc_flags(ibv_cq_ex* cq) { return current(cq).flags; }
// RoCE has no LIDs and no service level on the wire (IBTA annex 17); see transport::packet_kind.
std::uint32_t read_slid(ibv_cq_ex* /*cq*/) { return 0; }
std::uint8_t read_sl(ibv_cq_ex* cq) { return current(cq).service_level; }
std::uint8_t read_dlid_path_bits(ibv_cq_ex* /*cq*/) { return 0; }
std::uint64_t read_completion_ts(ibv_cq_ex* cq) {
  return static_cast<std::uint64_t>(queue_of(cq).batch.published.ns);
}
std::uint64_t read_completion_wallclock_ns(ibv_cq_ex* cq) {
  const verbs::CqBatch& batch = queue_of(cq).batch;
  return static_cast<std::uint64_t>(batch.published.ns + batch.wall_clock_offset);
}

void set_functions(ibv_cq_ex& cq, bool has_timestamps) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_err;
  cq.read_byte_len = read_byte_len;
  cq.read_imm_data = read_imm_data;
  cq.read_qp_num = read_qp_num;
  cq.read_src_qp = read_src_qp;
  cq.read_wc_flags = read_wc_flags;
  cq.read_slid = read_slid;
  cq.read_sl = read_sl;
  cq.read_dlid_path_bits = read_dlid_path_bits;
  if (!has_timestamps) return;
  cq.read_completion_ts = read_completion_ts;
  cq.read_completion_wallclock_ns = read_completion_wallclock_ns;
}

// --- Operations ----------------------------------------------------------------------------------

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  verbs::CqOptions options;
  if (const int error = verbs::to_cq_options(*attributes, options); error != 0) {
    errno = error;
    return nullptr;
  }
  if ((attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0) {
    options.domain = object_of(attributes->parent_domain);
    if (options.domain == nullptr || options.domain->made_of == nullptr) {
      errno = EINVAL;
      return nullptr;
    }
  }
  auto holder = allocate<CqHolder>();
  if (holder == nullptr) return nullptr;
  // More than an int holds is beyond every limit as a negative number is.
  holder->object =
      verbs::create_cq(*object_of(context), holder->base.cq, static_cast<int>(attributes->cqe),
                       attributes->channel, static_cast<int>(attributes->comp_vector), options);
  if (holder->object == nullptr) return nullptr;
  set_functions(holder->base.cq_ex, options.timestamps);
  return &holder.release()->base.cq_ex;
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes) {
  return told(verbs::modify_cq(*object_of(cq), *attributes));
}

int query_rt_values(ibv_context* context, ibv_values_ex* values) {
  return told(verbs::query_rt_values(*object_of(context), *values));
}

}  // namespace

void add_extended_cq_ops(verbs_context_ops& ops) {
  ops.create_cq_ex = create_cq_ex;
  ops.modify_cq = modify_cq;
  ops.query_rt_values = query_rt_values;
}

}  // namespace uroce::provider
