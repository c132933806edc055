// SPDX-License-Identifier: BSD-2-Clause
// Slots of a receive queue and what is written into them; the same for a QP's own and a shared one.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/qp.h"

namespace uroce::verbs {

constexpr std::uint32_t receive_stride(std::uint32_t sges) {
  return static_cast<std::uint32_t>(sizeof(transport::RecvWqe)) +
         sges * static_cast<std::uint32_t>(sizeof(memory::Sge));
}

constexpr std::size_t receive_ring_bytes(std::uint32_t capacity, std::uint32_t stride) {
  return std::size_t{transport::RecvQueue::ring_slots(capacity)} * stride;
}

// An SGE list is taken over by a copy.
static_assert(sizeof(memory::Sge) == sizeof(ibv_sge) &&
              offsetof(memory::Sge, address) == offsetof(ibv_sge, addr) &&
              offsetof(memory::Sge, length) == offsetof(ibv_sge, length) &&
              offsetof(memory::Sge, lkey) == offsetof(ibv_sge, lkey));

inline std::uint64_t total_bytes(const ibv_sge* list, int count) {
  std::uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += list[i].length;
  return sum;
}

// Nothing of the list is posted.
[[nodiscard]] inline int refuse_receives(int error, ibv_recv_wr* request, ibv_recv_wr** bad) {
  *bad = request;
  return error;
}

// Posts the list until one does not fit. 0, or an errno and `*bad` the first that was not posted
// (man ibv_post_recv). The caller serialises.
inline int post_receives(transport::RecvQueue& queue, std::uint32_t max_sges, ibv_recv_wr* request,
                         ibv_recv_wr** bad) {
  std::uint32_t free = queue.free_slots();
  std::uint32_t posted = 0;
  int error = 0;
  for (; request != nullptr; request = request->next) {
    if (request->num_sge < 0 || static_cast<std::uint32_t>(request->num_sge) > max_sges) {
      error = EINVAL;
    } else if (posted == free) {
      error = ENOMEM;
    }
    if (error != 0) break;
    transport::RecvWqe& wqe = queue.at(queue.next_post() + posted);
    const std::uint64_t bytes = total_bytes(request->sg_list, request->num_sge);
    wqe.wr_id = request->wr_id;
    // More than the largest message is as good as the largest message.
    wqe.length = bytes > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(bytes);
    wqe.sge_count = static_cast<std::uint32_t>(request->num_sge);
    if (request->num_sge != 0) {
      std::memcpy(static_cast<void*>(wqe.sges()), request->sg_list,
                  sizeof(ibv_sge) * static_cast<std::size_t>(request->num_sge));
    }
    ++posted;
  }
  queue.post_before_look(posted);
  if (error != 0) *bad = request;
  return error;
}

}  // namespace uroce::verbs
