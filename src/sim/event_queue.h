// SPDX-License-Identifier: BSD-2-Clause
// What will happen, soonest first; of what happens at the same time, what was said first. So the
// order of events never depends on addresses or on how the heap happens to lie.
//
// A heap with four children a node: it is half as deep as a binary one, and the four lie together.
#pragma once

#include <cstdint>
#include <vector>

#include "uroce/time.h"

namespace uroce::sim {

// Whoever something happens to. `what` is its own affair.
class EventSink {
 public:
  virtual void on_event(std::uint32_t what) = 0;

 protected:
  ~EventSink() = default;
};

struct ScheduledEvent {
  Instant when;
  std::uint32_t order = 0;  // serial: of two of the same time, the distance tells
  std::uint32_t what = 0;
  EventSink* sink = nullptr;
};

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const ScheduledEvent& front() const { return heap_.front(); }
  void push(Instant when, EventSink& sink, std::uint32_t what);
  ScheduledEvent pop();

 private:
  static constexpr std::size_t kChildren = 4;
  static bool is_sooner(const ScheduledEvent& a, const ScheduledEvent& b) {
    if (a.when != b.when) [[likely]]
      return a.when < b.when;
    return static_cast<std::int32_t>(a.order - b.order) < 0;
  }
  void sift_down(const ScheduledEvent& event);

  std::vector<ScheduledEvent> heap_;
  std::uint32_t next_order_ = 0;
};

}  // namespace uroce::sim
