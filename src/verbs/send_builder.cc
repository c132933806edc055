// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/send_builder.h"

#include <cerrno>
#include <cstring>

#include "verbs/ah.h"
#include "verbs/limits.h"
#include "verbs/mw.h"
#include "verbs/qp.h"
#include "verbs/queue_guard.h"
#include "verbs/receive_ring.h"
#include "verbs/send_flags.h"

namespace uroce::verbs {
namespace {

using transport::SendOperation;
using transport::SendWqe;

[[gnu::cold]] void fail(SendBuilder& builder, int error) {
  if (builder.error == 0) builder.error = error;
  builder.wqe = nullptr;
  builder.free = builder.prepared;
}

// A datagram's address, or the receive queue that a request of XRC is for.
bool needs_target(transport::Service service, SendOperation operation) {
  return service == transport::Service::kUd ||
         (service == transport::Service::kXrcInitiator && !transport::is_local(operation));
}

// The next request, complete but for what its operation and its setters add; null after a fault.
SendWqe* begin(Qp& qp, const SendHead& head, SendOperation operation) {
  SendBuilder& builder = qp.builder;
  if (builder.missing != 0 || (head.flags & ~kKnownSendFlags) != 0) [[unlikely]]
    fail(builder, EINVAL);
  if (builder.prepared == builder.free) [[unlikely]] {
    fail(builder, ENOMEM);
    return nullptr;
  }
  constexpr unsigned kInTheHead = kKnownSendFlags & ~unsigned{IBV_SEND_INLINE};
  transport::SendQueue& queue = qp.core.send_queue;
  SendWqe& wqe = queue.at(queue.next_post() + builder.prepared++);
  wqe.wr_id = head.wr_id;
  wqe.length = 0;
  wqe.immediate = 0;
  wqe.operation = operation;
  wqe.flags = kSendFlags[head.flags & kInTheHead];
  wqe.sge_count = 0;
  wqe.status = transport::WcStatus::kSuccess;
  if (needs_target(qp.service, operation)) {
    wqe.set_target({});
    builder.missing = SendBuilder::kTarget;
  }
  return builder.wqe = &wqe;
}

SendWqe* begin(Qp& qp, const SendHead& head, SendOperation operation, RemoteAddress remote) {
  SendWqe* const wqe = begin(qp, head, operation);
  if (wqe == nullptr) return nullptr;
  wqe->remote_address = remote.address;
  wqe->rkey = {remote.rkey};
  return wqe;
}

void begin_atomic(Qp& qp, const SendHead& head, SendOperation operation, RemoteAddress remote,
                  std::uint64_t compare_add, std::uint64_t swap) {
  SendWqe* const wqe = begin(qp, head, operation, remote);
  if (wqe == nullptr) return;
  wqe->compare_add = compare_add;
  wqe->swap = swap;
  qp.builder.missing |= SendBuilder::kData;
}

// An atomic write has brought its word.
bool has_its_data(const SendWqe& wqe) { return wqe.operation == SendOperation::kAtomicWrite; }

// False, and a fault: too long, or too short for what an atomic brings.
bool set_length(SendBuilder& builder, std::uint64_t bytes) {
  const bool is_atomic = transport::is_atomic(builder.wqe->operation);
  if (has_its_data(*builder.wqe) || bytes > kMessageBytesMax ||
      (is_atomic && bytes < sizeof(std::uint64_t))) [[unlikely]] {
    fail(builder, EINVAL);
    return false;
  }
  builder.wqe->length = is_atomic ? sizeof(std::uint64_t) : static_cast<std::uint32_t>(bytes);
  builder.missing &= ~SendBuilder::kData & 0xff;
  return true;
}

// Where the inline data go; null, and a fault, where there can be none.
std::byte* begin_inline(Qp& qp, std::uint64_t bytes) {
  SendBuilder& builder = qp.builder;
  if (builder.wqe == nullptr) return nullptr;
  if (is_read_or_atomic(builder.wqe->operation) || bytes > qp.limits.max_inline_data) [[unlikely]] {
    fail(builder, EINVAL);
    return nullptr;
  }
  builder.wqe->length = static_cast<std::uint32_t>(bytes);
  builder.wqe->flags |= transport::send_flag::kInline;
  return builder.wqe->inline_data();
}

// 0, or why the requests cannot be posted.
int check(const Qp& qp) {
  const SendBuilder& builder = qp.builder;
  if (builder.error != 0) return builder.error;
  if (builder.missing != 0) return EINVAL;
  if (!takes_requests(qp.core.state.load(std::memory_order_acquire))) return EINVAL;
  return qp.context.engine().is_abandoned() ? EIO : 0;
}

// Its way is in use from when it is set, since the address handle may go before it is posted, until
// the core has finished the datagram.
void set_path(SendWqe& wqe, const transport::DatagramTarget& target) {
  if (target.path != nullptr) target.path->users.fetch_add(1, std::memory_order_relaxed);
  transport::AddressPath* const former = wqe.target().path;
  if (former != nullptr) former->users.fetch_sub(1, std::memory_order_release);
  wqe.set_target(target);
}

// What was prepared is not posted.
void let_go_of_paths(Qp& qp) {
  if (qp.service != transport::Service::kUd) return;
  const transport::SendQueue& queue = qp.core.send_queue;
  for (std::uint32_t i = 0; i < qp.builder.prepared; ++i) {
    set_path(queue.at(queue.next_post() + i), {});
  }
}

void unlock(Qp& qp) {
  if (qp.builder.is_locked) qp.send_lock.unlock();
}

}  // namespace

std::uint64_t send_operations(ibv_qp_type type) {
  constexpr std::uint64_t kConnected =
      IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
      IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
  constexpr std::uint64_t kReliable = kConnected | IBV_QP_EX_WITH_RDMA_READ |
                                      IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                                      IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE;
  switch (static_cast<std::uint32_t>(type)) {  // a program in C may say any number
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
      return kReliable;
    case IBV_QPT_UC:
      return kConnected;
    case IBV_QPT_UD:
      return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    case IBV_QPT_RAW_PACKET:
      return IBV_QP_EX_WITH_SEND;
    default:
      return 0;
  }
}

void wr_start(Qp& qp) {
  const bool is_locked = lock_queue(qp.send_lock, qp.context.engine());
  qp.builder = {.free = qp.core.send_queue.free_slots(), .is_locked = is_locked};
  if (!is_locked) [[unlikely]]
    fail(qp.builder, EIO);
}

int wr_complete(Qp& qp) {
  const int error = check(qp);
  if (error != 0) [[unlikely]]
    let_go_of_paths(qp);
  const std::uint32_t prepared = error == 0 ? qp.builder.prepared : 0;
  qp.core.send_queue.post(prepared);
  unlock(qp);
  if (prepared != 0) qp.context.engine().ring(qp.doorbell);
  return error;
}

void wr_abort(Qp& qp) {
  let_go_of_paths(qp);
  unlock(qp);
}

// --- Builders ------------------------------------------------------------------------------------

void wr_send(Qp& qp, const SendHead& head) { begin(qp, head, SendOperation::kSend); }

void wr_send_invalidate(Qp& qp, const SendHead& head, std::uint32_t rkey) {
  begin(qp, head, SendOperation::kSendWithInvalidate, {.rkey = rkey});
}

void wr_send_immediate(Qp& qp, const SendHead& head, __be32 immediate) {
  SendWqe* const wqe = begin(qp, head, SendOperation::kSendWithImmediate);
  if (wqe != nullptr) wqe->immediate = immediate;
}

void wr_write(Qp& qp, const SendHead& head, RemoteAddress remote) {
  begin(qp, head, SendOperation::kWrite, remote);
}

void wr_write_immediate(Qp& qp, const SendHead& head, RemoteAddress remote, __be32 immediate) {
  SendWqe* const wqe = begin(qp, head, SendOperation::kWriteWithImmediate, remote);
  if (wqe != nullptr) wqe->immediate = immediate;
}

void wr_read(Qp& qp, const SendHead& head, RemoteAddress remote) {
  begin(qp, head, SendOperation::kRead, remote);
}

void wr_compare_swap(Qp& qp, const SendHead& head, RemoteAddress remote, std::uint64_t compare,
                     std::uint64_t swap) {
  begin_atomic(qp, head, SendOperation::kCompareSwap, remote, compare, swap);
}

void wr_fetch_add(Qp& qp, const SendHead& head, RemoteAddress remote, std::uint64_t add) {
  begin_atomic(qp, head, SendOperation::kFetchAdd, remote, add, 0);
}

void wr_bind_window(Qp& qp, const SendHead& head, const ibv_mw* mw, std::uint32_t rkey,
                    const ibv_mw_bind_info& info) {
  SendWqe* const wqe = begin(qp, head, SendOperation::kBindWindow);
  if (wqe == nullptr) return;
  if (check_binding(mw, IBV_MW_TYPE_2, info) != 0) return fail(qp.builder, EINVAL);
  write_binding(*mw, rkey, info, *wqe);
  qp.builder.wqe = nullptr;
}

void wr_local_invalidate(Qp& qp, const SendHead& head, std::uint32_t rkey) {
  begin(qp, head, SendOperation::kLocalInvalidate, {.rkey = rkey});
  qp.builder.wqe = nullptr;
}

void wr_atomic_write(Qp& qp, const SendHead& head, RemoteAddress remote, const void* word) {
  SendWqe* const wqe = begin(qp, head, SendOperation::kAtomicWrite, remote);
  if (wqe == nullptr) return;
  wqe->length = sizeof(std::uint64_t);
  wqe->flags |= transport::send_flag::kInline;
  std::memcpy(wqe->inline_data(), word, sizeof(std::uint64_t));
}

// --- Setters -------------------------------------------------------------------------------------

void wr_set_target(Qp& qp, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  SendBuilder& builder = qp.builder;
  if (builder.wqe == nullptr) [[unlikely]]
    return;
  if (!may_send_to(qp, ah) || qp.service != transport::Service::kUd) [[unlikely]]
    return fail(builder, EINVAL);
  const Qpn number{qpn & 0xff'ffff};
  set_path(*builder.wqe, {path_to(ah_of(*ah), number), number, {qkey}});
  builder.missing &= ~SendBuilder::kTarget & 0xff;
}

void wr_set_srq(Qp& qp, std::uint32_t number) {
  SendBuilder& builder = qp.builder;
  if (builder.wqe == nullptr) [[unlikely]]
    return;
  if (qp.service != transport::Service::kXrcInitiator) [[unlikely]]
    return fail(builder, EINVAL);
  builder.wqe->set_srq({number & 0xff'ffff});
  builder.missing &= ~SendBuilder::kTarget & 0xff;
}

void wr_set_sge(Qp& qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  SendBuilder& builder = qp.builder;
  if (builder.wqe == nullptr || !set_length(builder, length)) [[unlikely]]
    return;
  if (qp.limits.max_send_sge == 0) [[unlikely]]
    return fail(builder, EINVAL);
  builder.wqe->sge_count = 1;
  *builder.wqe->sges() = {address, length, {lkey}};
}

void wr_set_sge_list(Qp& qp, std::span<const ibv_sge> list) {
  SendBuilder& builder = qp.builder;
  if (builder.wqe == nullptr) [[unlikely]]
    return;
  if (list.size() > qp.limits.max_send_sge) [[unlikely]]
    return fail(builder, EINVAL);
  if (!set_length(builder, total_bytes(list.data(), static_cast<int>(list.size())))) [[unlikely]]
    return;
  builder.wqe->sge_count = static_cast<std::uint16_t>(list.size());
  if (list.empty()) return;
  std::memcpy(static_cast<void*>(builder.wqe->sges()), list.data(), list.size_bytes());
}

void wr_set_inline_data(Qp& qp, const void* data, std::size_t length) {
  std::byte* const to = begin_inline(qp, length);
  if (to != nullptr && length != 0) std::memcpy(to, data, length);
}

void wr_set_inline_data_list(Qp& qp, std::span<const ibv_data_buf> list) {
  std::uint64_t bytes = 0;
  for (const ibv_data_buf& piece : list) {
    // No piece is longer than what is allowed in all, so that the sum cannot wrap.
    if (piece.length > qp.limits.max_inline_data) [[unlikely]]
      return fail(qp.builder, EINVAL);
    bytes += piece.length;
  }
  std::byte* to = begin_inline(qp, bytes);
  if (to == nullptr) return;
  for (const ibv_data_buf& piece : list) {
    if (piece.length != 0) std::memcpy(to, piece.addr, piece.length);
    to += piece.length;
  }
}

}  // namespace uroce::verbs
