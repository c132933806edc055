// SPDX-License-Identifier: BSD-2-Clause
// The QPs that wait for a point in time, soonest first: a binary heap of their timers in memory of
// the engine.
//
// A deadline that moves later (every ACK does that) only changes the timer; the heap keeps the
// older, earlier key and puts the timer back when that one is due. So progress costs a store, and
// an idle QP costs one early look.
#pragma once

#include <cstdint>
#include <span>

#include "uroce/time.h"

namespace uroce::transport {

struct Qp;

// One of a QP's timers, which is in one Deadlines at most.
struct Timer {
  Qp* qp = nullptr;
  Instant deadline = Instant::never();  // what is meant
  Instant heap_key = Instant::never();  // what the heap sorts by: never later than `deadline`
  std::uint32_t heap_index = 0;         // 1-based; 0: not in the heap

  [[nodiscard]] bool is_running() const { return deadline != Instant::never(); }
};

class Deadlines {
 public:
  // `heap` has room for a timer of every QP of the device and is not shrunk; what it held moves
  // along.
  void set_memory(std::span<Timer*> heap);

  // The timer's deadline becomes `when`; never() takes it away.
  void set(Timer& timer, Instant when);
  void remove(Timer& timer);
  // The QP of a timer whose deadline has come, which is thereby unset; null when there is none.
  [[nodiscard]] Qp* pop_due(Instant now);
  // No deadline is before this.
  [[nodiscard]] Instant next() const { return next_; }

 private:
  void place(std::uint32_t index, Timer& timer);
  void sift_up(std::uint32_t index);
  void sift_down(std::uint32_t index);
  void take_out(std::uint32_t index);

  std::span<Timer*> heap_;
  std::uint32_t count_ = 0;
  Instant next_ = Instant::never();  // the key on top: asked for several times a turn
};

}  // namespace uroce::transport
