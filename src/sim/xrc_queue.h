// SPDX-License-Identifier: BSD-2-Clause
// A shared receive queue of an XRC domain with its buffers, and the names that messages on their
// way to a domain have for its queues.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/receive_pool.h"
#include "sim/scenario.h"
#include "sim/site.h"

namespace uroce::sim {

class XrcQueue {
 public:
  static constexpr std::uint32_t slot_bytes(const Scenario& s) { return s.message_bytes + 64; }

  // `index` among those of its target; its buffers are in `area`.
  XrcQueue(Oracle& oracle, Site& site, const Scenario& scenario, std::uint32_t index, XrcdId domain,
           Arena& arena, Range area, Prng prng);
  XrcQueue(const XrcQueue&) = delete;
  XrcQueue& operator=(const XrcQueue&) = delete;
  ~XrcQueue() { site_.node().hca().forget(srq_); }

  [[nodiscard]] Qpn number() const { return srq_.number; }
  void post(std::uint32_t count);
  void on_completion(const transport::Cqe& entry, Flow& flow, bool may_flush) {
    pool_.on_completion(entry, flow, may_flush);
  }

  // Which queue of its target a receive completion is of.
  static std::uint32_t index_of(const transport::Cqe& entry) {
    return static_cast<std::uint32_t>(entry.wr_id >> 32) & 0xff;
  }

 private:
  Site& site_;
  std::uint32_t index_;
  std::vector<std::byte> memory_;
  transport::Srq srq_;
  ReceivePool pool_;
};

}  // namespace uroce::sim
