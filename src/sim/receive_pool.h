// SPDX-License-Identifier: BSD-2-Clause
// The buffers that an application receives into, for one QP or for a shared receive queue, and what
// must hold of each completion: the next message of its sender, whole, in a buffer that was posted,
// with not a byte beside it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/prng.h"
#include "sim/arena.h"
#include "sim/flow.h"
#include "sim/oracle.h"
#include "sim/request.h"
#include "transport/completion.h"
#include "transport/qp.h"

namespace uroce::sim {

class ReceivePool {
 public:
  static constexpr std::uint64_t kWrIdBit = std::uint64_t{1} << 63;

  // Slots of `slot_bytes` from `area` on; each holds a message of `message_bytes` in several pieces
  // with gaps between them.
  ReceivePool(Oracle& oracle, Arena& arena, Range area, std::uint32_t slot_bytes,
              std::uint32_t message_bytes, bool is_shared, Prng prng);

  [[nodiscard]] bool can_post() const { return !free_.empty(); }
  // The WR_ID and SGEs of the next receive request.
  struct Posted {
    std::uint64_t wr_id = 0;
    std::array<memory::Sge, kSgesMax> sges;
    std::uint32_t sge_count = 0;
  };
  [[nodiscard]] Posted post();

  // `flow` is what its QP receives from. `may_flush`: the QP is in ERR.
  void on_completion(const transport::Cqe& entry, Flow& flow, bool may_flush);
  // The QP is gone, and with it what it had posted. Not for a shared one.
  void abandon();
  // A QP that took this one from a shared queue is gone, and so is its completion.
  void reclaim(std::uint64_t wr_id);

  [[nodiscard]] std::size_t outstanding() const { return order_.size(); }
  [[nodiscard]] std::uint32_t message_bytes() const { return message_bytes_; }

 private:
  struct Slot {
    Pieces pieces;
    bool is_posted = false;
  };
  void take_back(std::uint32_t index);
  [[nodiscard]] Range slot_range(std::uint32_t slot) const;
  void cut(Slot& slot, std::uint32_t index);
  void check_message(const transport::Cqe& entry, const Request& message, Slot& slot);
  void compare(const Request& message, const Slot& slot);
  void check_order(std::uint32_t index);
  void accept(const Slot& slot);

  Oracle& oracle_;
  Arena& arena_;
  Range area_;
  std::uint32_t slot_bytes_, message_bytes_;
  bool is_shared_;
  Prng prng_;
  std::vector<Slot> slots_;
  std::deque<std::uint32_t> free_;
  std::deque<std::uint32_t> order_;  // posted, oldest first
};

}  // namespace uroce::sim
