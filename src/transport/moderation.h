// SPDX-License-Identifier: BSD-2-Clause
// When an armed completion queue is announced: at the next completion (IBTA 11.4.2.2), or, if the
// application asked for it (ibv_modify_cq), when some number of them are there or the first of
// them has waited for some time. Completions that nobody armed for do not count.
#pragma once

#include <atomic>
#include <cstdint>

#include "uroce/time.h"

namespace uroce::transport {

// What ibv_req_notify_cq asked for.
enum class Arm : std::uint32_t { kNone, kSolicited, kAny };

// True when the queue was armed for this, and is no more.
[[nodiscard]] inline bool disarm_if(std::atomic<Arm>& arm, bool solicited) {
  Arm armed = arm.load(std::memory_order_seq_cst);
  while (armed == Arm::kAny || (armed == Arm::kSolicited && solicited)) {
    if (arm.compare_exchange_weak(armed, Arm::kNone, std::memory_order_seq_cst)) return true;
  }
  return false;
}

class Moderation {
 public:
  // With no count or no period nothing could end the waiting, or nothing has to wait: off.
  void set(std::uint16_t count, Duration period) {
    count_ = period.ns == 0 ? std::uint16_t{0} : count;
    period_ = period;
  }
  [[nodiscard]] bool is_on() const { return count_ > 1; }

  // Of a queue that was just published. True: its announcement is due.
  [[nodiscard]] bool on_published(std::uint32_t count, bool solicited, std::atomic<Arm>& arm,
                                  Instant now) {
    const Arm armed = arm.load(std::memory_order_seq_cst);
    if (armed == Arm::kNone) {
      waiting_ = 0;
      return false;
    }
    waiting_ += count;
    const bool is_waited_for = armed == Arm::kAny || solicited;
    if (is_waited_for && due_ == Instant::never()) due_ = now + period_;
    return due_ != Instant::never() && (waiting_ >= count_ || due_ <= now) && announce(arm);
  }

  // Until when the announcement may wait; never: none does.
  [[nodiscard]] Instant due() const { return due_; }
  // What waits is announced now.
  [[nodiscard]] bool announce(std::atomic<Arm>& arm) {
    const bool was_waiting = due_ != Instant::never();
    due_ = Instant::never();
    waiting_ = 0;
    return was_waiting && arm.exchange(Arm::kNone, std::memory_order_seq_cst) != Arm::kNone;
  }

 private:
  Duration period_{};
  Instant due_ = Instant::never();
  std::uint32_t waiting_ = 0;  // completions
  std::uint16_t count_ = 0;
};

}  // namespace uroce::transport
