// SPDX-License-Identifier: BSD-2-Clause
// When the helper thread sleeps and what may wake it: a pure decision, so that it can be tested.
//
//   kArmed    asleep until something arrives (or a timer is due). The state of an idle device, of
//             one whose application sleeps or computes, and of one whose application watches
//             memory instead of polling.
//   kTicking  the application polls, so arrivals wake nobody; the helper looks once a millisecond
//             whether it still does. A wake-up per packet would cost the poller 10 to 30 %.
//
// What tells the two is whether the helper finds work. Woken several times in a row for packets
// that the application had taken already: it polls. Woken by a tick while the application has taken
// no turn for a while: it does not. Links that cannot wake anybody are looked at by timer, and
// there the application's last turn has to say it all.
#pragma once

#include <cstddef>

#include "uroce/time.h"

namespace uroce::engine {

class SleepPolicy {
 public:
  enum class State { kArmed, kTicking };

  // An application that took its last turn within this polls, or was about to.
  static constexpr Duration kPolledLately = microseconds(50);
  static constexpr int kUselessWakeupsMax = 3;
  static constexpr Duration kTick = milliseconds(1);

  enum class Cause { kArrival, kTimer, kOther };
  struct Look {
    Cause woken_by = Cause::kOther;
    bool found_work = false;       // received something
    Duration since_inline_turn{};  // of the application, before this look
  };

  // After every look.
  State after(const Look& look) {
    const bool polls = look.since_inline_turn < kPolledLately;
    if (state_ == State::kTicking) {
      if (!polls) become(State::kArmed);
    } else if (look.woken_by == Cause::kArrival) {
      useless_ = !look.found_work && polls ? useless_ + 1 : 0;
      if (useless_ >= kUselessWakeupsMax) become(State::kTicking);
    } else if (look.woken_by == Cause::kTimer && polls) {
      become(State::kTicking);
    }
    return state_;
  }
  // ibv_req_notify_cq: the application is about to sleep.
  void application_will_sleep() { become(State::kArmed); }

  [[nodiscard]] State state() const { return state_; }

 private:
  void become(State state) {
    state_ = state;
    useless_ = 0;
  }

  State state_ = State::kArmed;
  int useless_ = 0;
};

}  // namespace uroce::engine
