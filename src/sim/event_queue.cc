// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_queue.h"

#include <algorithm>

namespace uroce::sim {

void EventQueue::push(Instant when, EventSink& sink, std::uint32_t what) {
  const ScheduledEvent event{when, next_order_++, what, &sink};
  std::size_t at = heap_.size();
  heap_.push_back(event);
  while (at != 0) {
    const std::size_t parent = (at - 1) / kChildren;
    if (!is_sooner(event, heap_[parent])) break;
    heap_[at] = heap_[parent];
    at = parent;
  }
  heap_[at] = event;
}

ScheduledEvent EventQueue::pop() {
  const ScheduledEvent first = heap_.front();
  const ScheduledEvent last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(last);
  return first;
}

// From the root, which is free.
void EventQueue::sift_down(const ScheduledEvent& event) {
  std::size_t at = 0;
  for (;;) {
    const std::size_t first = at * kChildren + 1;
    if (first >= heap_.size()) break;
    std::size_t soonest = first;
    const std::size_t end = std::min(first + kChildren, heap_.size());
    for (std::size_t child = first + 1; child < end; ++child) {
      if (is_sooner(heap_[child], heap_[soonest])) soonest = child;
    }
    if (!is_sooner(heap_[soonest], event)) break;
    heap_[at] = heap_[soonest];
    at = soonest;
  }
  heap_[at] = event;
}

}  // namespace uroce::sim
