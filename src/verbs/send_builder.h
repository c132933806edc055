// SPDX-License-Identifier: BSD-2-Clause
// Posting by functions (man ibv_wr_post): between wr_start and wr_complete each builder begins a
// work request, setters complete it, and all of them are posted at the end, or none. They are
// written where they will lie, behind what is posted, so that nothing is copied twice.
//
//   wr_start(qp);                               // takes the lock of the send queue
//   wr_send(qp, {.wr_id = 1, .flags = IBV_SEND_SIGNALED});
//   wr_set_sge(qp, lkey, address, length);
//   if (int error = wr_complete(qp)) ...        // nothing was posted then
//
// Builders and setters report nothing: the first fault is kept for wr_complete, and what follows it
// does nothing. ENOMEM: no room in the queue; EINVAL: everything else.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/work_request.h"

namespace uroce::verbs {

struct Qp;

// The requests that are being prepared on a queue pair.
struct SendBuilder {
  transport::SendWqe* wqe = nullptr;  // the last one; null: there was a fault, or none was begun
  std::uint32_t prepared = 0;
  std::uint32_t free = 0;  // slots, when it began; none more after a fault
  int error = 0;
  bool is_locked = false;    // it never is where nobody can have the lock: in the child of a fork
  std::uint8_t missing = 0;  // what the last one is nothing without: kData, kTarget

  static constexpr std::uint8_t kData = 1;    // an atomic's result needs a place
  static constexpr std::uint8_t kTarget = 2;  // a datagram needs an address, XRC a receive queue
};

// What the application wrote into ibv_qp_ex before it called the builder.
struct SendHead {
  std::uint64_t wr_id = 0;
  unsigned flags = 0;  // IBV_SEND_*; inline data have their setter and need no flag
};
struct RemoteAddress {
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
};

// All of IBV_QP_EX_WITH_* that a queue pair of this type has.
[[nodiscard]] std::uint64_t send_operations(ibv_qp_type type);

void wr_start(Qp& qp);
[[nodiscard]] int wr_complete(Qp& qp);
void wr_abort(Qp& qp);

void wr_send(Qp& qp, const SendHead& head);
void wr_send_invalidate(Qp& qp, const SendHead& head, std::uint32_t rkey);
void wr_send_immediate(Qp& qp, const SendHead& head, __be32 immediate);
void wr_write(Qp& qp, const SendHead& head, RemoteAddress remote);
void wr_write_immediate(Qp& qp, const SendHead& head, RemoteAddress remote, __be32 immediate);
void wr_read(Qp& qp, const SendHead& head, RemoteAddress remote);
void wr_compare_swap(Qp& qp, const SendHead& head, RemoteAddress remote, std::uint64_t compare,
                     std::uint64_t swap);
void wr_fetch_add(Qp& qp, const SendHead& head, RemoteAddress remote, std::uint64_t add);

// No setter belongs to these.
void wr_bind_window(Qp& qp, const SendHead& head, const ibv_mw* mw, std::uint32_t rkey,
                    const ibv_mw_bind_info& info);
void wr_local_invalidate(Qp& qp, const SendHead& head, std::uint32_t rkey);

// 8 bytes, taken at once.
void wr_atomic_write(Qp& qp, const SendHead& head, RemoteAddress remote, const void* word);

// Of a datagram; EINVAL without an address handle.
void wr_set_target(Qp& qp, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey);
// Of a request of XRC: the peer's shared receive queue.
void wr_set_srq(Qp& qp, std::uint32_t number);
void wr_set_sge(Qp& qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length);
void wr_set_sge_list(Qp& qp, std::span<const ibv_sge> list);
void wr_set_inline_data(Qp& qp, const void* data, std::size_t length);
void wr_set_inline_data_list(Qp& qp, std::span<const ibv_data_buf> list);

}  // namespace uroce::verbs
