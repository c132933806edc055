// SPDX-License-Identifier: BSD-2-Clause
// ibv_post_send: checks each work request, writes it into the ring, and rings once for the list.
// The checks are a table by opcode, and a request that fails one is the first not posted.
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "verbs/ah.h"
#include "verbs/limits.h"
#include "verbs/mw.h"
#include "verbs/qp.h"
#include "verbs/receive_ring.h"
#include "verbs/send_flags.h"

namespace uroce::verbs {
namespace {

using transport::SendOperation;
using transport::SendWqe;

enum class Shape : std::uint8_t {
  kUnsupported,
  kSend,
  kWrite,
  kRead,
  kAtomic,
  kDatagram,
  kAtomicWrite,
  kBind,
  kInvalidate,
};
struct OpcodeRow {
  Shape shape = Shape::kUnsupported;
  SendOperation operation = SendOperation::kSend;
};

constexpr std::size_t kOpcodes = 16;
constexpr std::array<OpcodeRow, kOpcodes> make_rc_rows() {
  std::array<OpcodeRow, kOpcodes> rows{};
  rows[IBV_WR_SEND] = {Shape::kSend, SendOperation::kSend};
  rows[IBV_WR_SEND_WITH_IMM] = {Shape::kSend, SendOperation::kSendWithImmediate};
  rows[IBV_WR_RDMA_WRITE] = {Shape::kWrite, SendOperation::kWrite};
  rows[IBV_WR_RDMA_WRITE_WITH_IMM] = {Shape::kWrite, SendOperation::kWriteWithImmediate};
  rows[IBV_WR_RDMA_READ] = {Shape::kRead, SendOperation::kRead};
  rows[IBV_WR_ATOMIC_CMP_AND_SWP] = {Shape::kAtomic, SendOperation::kCompareSwap};
  rows[IBV_WR_ATOMIC_FETCH_AND_ADD] = {Shape::kAtomic, SendOperation::kFetchAdd};
  rows[IBV_WR_ATOMIC_WRITE] = {Shape::kAtomicWrite, SendOperation::kAtomicWrite};
  rows[IBV_WR_SEND_WITH_INV] = {Shape::kSend, SendOperation::kSendWithInvalidate};
  rows[IBV_WR_BIND_MW] = {Shape::kBind, SendOperation::kBindWindow};
  rows[IBV_WR_LOCAL_INV] = {Shape::kInvalidate, SendOperation::kLocalInvalidate};
  return rows;
}
constexpr std::array<OpcodeRow, kOpcodes> make_uc_rows() {
  auto rows = make_rc_rows();
  for (OpcodeRow& row : rows) {
    if (row.shape == Shape::kRead || row.shape == Shape::kAtomic) row = {};
  }
  rows[IBV_WR_SEND_WITH_INV] = {};
  rows[IBV_WR_ATOMIC_WRITE] = {};
  return rows;
}
constexpr std::array<OpcodeRow, kOpcodes> make_ud_rows() {
  std::array<OpcodeRow, kOpcodes> rows{};
  rows[IBV_WR_SEND] = {Shape::kDatagram, SendOperation::kSend};
  rows[IBV_WR_SEND_WITH_IMM] = {Shape::kDatagram, SendOperation::kSendWithImmediate};
  return rows;
}
constexpr std::array<OpcodeRow, kOpcodes> make_raw_packet_rows() {
  std::array<OpcodeRow, kOpcodes> rows{};
  rows[IBV_WR_SEND] = {Shape::kSend, SendOperation::kSend};
  return rows;
}
constexpr auto kRcRows = make_rc_rows();
constexpr auto kUcRows = make_uc_rows();
constexpr auto kUdRows = make_ud_rows();
constexpr auto kRawPacketRows = make_raw_packet_rows();
constexpr std::array<OpcodeRow, kOpcodes> kNoRows{};

constexpr const std::array<OpcodeRow, kOpcodes>& rows_of(transport::Service service) {
  switch (service) {
    case transport::Service::kRc:
    case transport::Service::kXrcInitiator:
      return kRcRows;
    case transport::Service::kUc:
      return kUcRows;
    case transport::Service::kUd:
      return kUdRows;
    case transport::Service::kRawPacket:
      return kRawPacketRows;
    case transport::Service::kXrcTarget:
      return kNoRows;
  }
  return kRcRows;
}

// Nothing is sent, and there is no list of elements.
constexpr bool is_local(Shape shape) {
  return shape == Shape::kBind || shape == Shape::kInvalidate;
}

// man ibv_post_send. The length of the message is written to `bytes`.
int check(const ibv_send_wr& request, const Qp& qp, Shape shape, std::uint64_t& bytes) {
  const ibv_qp_cap& limits = qp.limits;
  if (shape == Shape::kUnsupported || (request.send_flags & ~kKnownSendFlags) != 0) return EINVAL;
  if (is_local(shape)) [[unlikely]] {
    const auto& bind = request.bind_mw;
    return shape == Shape::kBind ? check_binding(bind.mw, IBV_MW_TYPE_2, bind.bind_info) : 0;
  }
  if (request.num_sge < 0) return EINVAL;
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  const auto sges = static_cast<std::uint32_t>(request.num_sge);
  // Inline data are copied here and now, so their number of pieces does not matter.
  if (!is_inline && sges > limits.max_send_sge) return EINVAL;
  bytes = total_bytes(request.sg_list, request.num_sge);
  if (bytes > kMessageBytesMax) return EINVAL;
  if (is_inline && (shape == Shape::kRead || shape == Shape::kAtomic)) return EINVAL;
  if (is_inline && bytes > limits.max_inline_data) return EINVAL;
  if (shape == Shape::kDatagram && !may_send_to(qp, request.wr.ud.ah)) return EINVAL;
  if (shape == Shape::kAtomicWrite && bytes != sizeof(std::uint64_t)) return EINVAL;
  if (shape == Shape::kAtomic && bytes < sizeof(std::uint64_t)) return EINVAL;
  return 0;
}

void copy_inline(const ibv_send_wr& request, std::byte* to) {
  for (int i = 0; i < request.num_sge; ++i) {
    const ibv_sge& sge = request.sg_list[i];
    if (sge.length != 0) std::memcpy(to, reinterpret_cast<const void*>(sge.addr), sge.length);
    to += sge.length;
  }
}

// Its path is in use until the request is finished.
transport::DatagramTarget target_of(const ibv_send_wr& request) {
  const Qpn qpn{request.wr.ud.remote_qpn & 0xff'ffff};
  transport::AddressPath* path = path_to(ah_of(*request.wr.ud.ah), qpn);
  if (path != nullptr) path->users.fetch_add(1, std::memory_order_relaxed);
  return {path, qpn, {request.wr.ud.remote_qkey}};
}

void write_remote_part(const ibv_send_wr& request, Shape shape, SendWqe& wqe) {
  if (shape == Shape::kAtomic) {
    wqe.remote_address = request.wr.atomic.remote_addr;
    wqe.rkey = {request.wr.atomic.rkey};
    wqe.compare_add = request.wr.atomic.compare_add;
    wqe.swap = request.wr.atomic.swap;
    wqe.length = sizeof(std::uint64_t);
  } else if (shape == Shape::kDatagram) {
    wqe.set_target(target_of(request));
  } else if (shape == Shape::kSend) {
    wqe.rkey = {request.invalidate_rkey};  // of no account in a SEND without
  } else {
    wqe.remote_address = request.wr.rdma.remote_addr;
    wqe.rkey = {request.wr.rdma.rkey};
  }
}

[[gnu::cold]] void write_local(const ibv_send_wr& request, OpcodeRow row, SendWqe& wqe) {
  wqe.wr_id = request.wr_id;
  wqe.operation = row.operation;
  wqe.flags = kSendFlags[request.send_flags & (IBV_SEND_SIGNALED | IBV_SEND_FENCE)];
  if (row.shape == Shape::kBind) {
    return write_binding(*request.bind_mw.mw, request.bind_mw.rkey, request.bind_mw.bind_info, wqe);
  }
  wqe.length = 0;
  wqe.sge_count = 0;
  wqe.rkey = {request.invalidate_rkey};
}

void write_wqe(const ibv_send_wr& request, OpcodeRow row, std::uint64_t bytes, SendWqe& wqe) {
  if (is_local(row.shape)) [[unlikely]]
    return write_local(request, row, wqe);
  wqe.wr_id = request.wr_id;
  wqe.length = static_cast<std::uint32_t>(bytes);
  wqe.immediate = request.imm_data;
  wqe.operation = row.operation;
  wqe.flags = kSendFlags[request.send_flags & kKnownSendFlags];
  wqe.status = transport::WcStatus::kSuccess;
  wqe.sge_count = 0;
  write_remote_part(request, row.shape, wqe);
  if (wqe.is_inline()) {
    copy_inline(request, wqe.inline_data());
  } else if (request.num_sge == 1) [[likely]] {
    wqe.sge_count = 1;
    std::memcpy(static_cast<void*>(wqe.sges()), request.sg_list, sizeof(ibv_sge));
  } else if (request.num_sge != 0) {
    wqe.sge_count = static_cast<std::uint16_t>(request.num_sge);
    std::memcpy(static_cast<void*>(wqe.sges()), request.sg_list,
                sizeof(ibv_sge) * static_cast<std::size_t>(request.num_sge));
  }
}

// How many were posted is `posted`; 0 or the errno of `*request`, which then was not.
int post_list(Qp& qp, ibv_send_wr*& request, std::uint32_t& posted) {
  transport::SendQueue& queue = qp.core.send_queue;
  const std::uint32_t free = queue.free_slots();
  const auto& rows = rows_of(qp.service);
  for (; request != nullptr; request = request->next) {
    // The application may have written any number there.
    const auto opcode = static_cast<std::uint32_t>(request->opcode);
    const OpcodeRow row = opcode < kOpcodes ? rows[opcode] : OpcodeRow{};
    std::uint64_t bytes = 0;
    if (const int e = check(*request, qp, row.shape, bytes); e != 0) return e;
    if (posted == free) return ENOMEM;
    SendWqe& wqe = queue.at(queue.next_post() + posted);
    write_wqe(*request, row, bytes, wqe);
    if (qp.service == transport::Service::kXrcInitiator && !is_local(row.shape)) [[unlikely]]
      wqe.set_srq({request->qp_type.xrc.remote_srqn & 0xff'ffff});
    ++posted;
  }
  return 0;
}

}  // namespace

int post_send(Qp& qp, ibv_send_wr* request, ibv_send_wr** bad) {
  const bool is_open = takes_requests(qp.core.state.load(std::memory_order_acquire));
  if (!is_open || qp.context.engine().is_abandoned()) [[unlikely]] {
    *bad = request;
    return is_open ? EIO : EINVAL;
  }
  std::uint32_t posted = 0;
  int error = 0;
  {
    const std::lock_guard posters(qp.send_lock);
    error = post_list(qp, request, posted);
    qp.core.send_queue.post(posted);
  }
  if (error != 0) [[unlikely]]
    *bad = request;
  if (posted != 0) qp.context.engine().ring(qp.doorbell);
  return error;
}

}  // namespace uroce::verbs
