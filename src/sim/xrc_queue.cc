// SPDX-License-Identifier: BSD-2-Clause
#include "sim/xrc_queue.h"

#include "sim/queue_pair.h"

namespace uroce::sim {

using namespace transport;

namespace {

inline constexpr auto kStride =
    static_cast<std::uint32_t>(sizeof(RecvWqe) + kSgesMax * sizeof(memory::Sge));

}  // namespace

XrcQueue::XrcQueue(Oracle& oracle, Site& site, const Scenario& s, std::uint32_t index,
                   XrcdId domain, Arena& arena, Range area, Prng prng)
    : site_(site),
      index_(index),
      memory_(std::size_t{RecvQueue::ring_slots(s.capacity)} * kStride),
      pool_(oracle, arena, area, slot_bytes(s), s.message_bytes, false, prng) {
  srq_.queue.set_memory(memory_, s.capacity, kStride);
  srq_.number = site.node().allocate_qpn();
  srq_.xrcd = domain;
  srq_.pd = {1};
  srq_.cq = &site.cq();
  site.node().hca().insert_srq(srq_);
}

void XrcQueue::post(std::uint32_t count) {
  for (; count != 0 && pool_.can_post() && srq_.queue.free_slots() != 0; --count) {
    const ReceivePool::Posted posted = pool_.post();
    post_receive(srq_.queue, posted.wr_id | std::uint64_t{index_} << 32,
                 {posted.sges.data(), posted.sge_count});
  }
}

}  // namespace uroce::sim
