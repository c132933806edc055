// SPDX-License-Identifier: BSD-2-Clause
#include "transport/deadlines.h"

namespace uroce::transport {

// Heap positions are 1-based, so that 0 means "not in the heap": position i lies at heap_[i - 1].

void Deadlines::set_memory(std::span<Timer*> heap) {
  for (std::uint32_t i = 0; i < count_; ++i) heap[i] = heap_[i];
  heap_ = heap;
}

void Deadlines::set(Timer& timer, Instant when) {
  timer.deadline = when;
  if (when == Instant::never()) return;  // the stale key is dropped when its time comes
  if (timer.heap_index == 0) {
    timer.heap_key = when;
    place(++count_, timer);
    sift_up(count_);
  } else if (when < timer.heap_key) {
    timer.heap_key = when;
    sift_up(timer.heap_index);
  }
}

void Deadlines::remove(Timer& timer) {
  timer.deadline = Instant::never();
  if (timer.heap_index != 0) take_out(timer.heap_index);
}

Qp* Deadlines::pop_due(Instant now) {
  while (count_ != 0) {
    Timer& timer = *heap_[0];
    if (timer.heap_key > now) return nullptr;
    take_out(1);
    if (timer.deadline <= now) {
      timer.deadline = Instant::never();
      return timer.qp;
    }
    set(timer, timer.deadline);
  }
  return nullptr;
}

void Deadlines::place(std::uint32_t index, Timer& timer) {
  heap_[index - 1] = &timer;
  timer.heap_index = index;
  if (index == 1) next_ = timer.heap_key;
}

void Deadlines::sift_up(std::uint32_t index) {
  Timer& timer = *heap_[index - 1];
  for (; index > 1 && timer.heap_key < heap_[index / 2 - 1]->heap_key; index /= 2) {
    place(index, *heap_[index / 2 - 1]);
  }
  place(index, timer);
}

void Deadlines::sift_down(std::uint32_t index) {
  Timer& timer = *heap_[index - 1];
  while (index * 2 <= count_) {
    std::uint32_t child = index * 2;
    if (child < count_ && heap_[child]->heap_key < heap_[child - 1]->heap_key) ++child;
    if (timer.heap_key <= heap_[child - 1]->heap_key) break;
    place(index, *heap_[child - 1]);
    index = child;
  }
  place(index, timer);
}

void Deadlines::take_out(std::uint32_t index) {
  heap_[index - 1]->heap_index = 0;
  Timer& last = *heap_[--count_];
  if (count_ == 0) next_ = Instant::never();
  if (index > count_) return;
  place(index, last);
  sift_up(index);
  sift_down(last.heap_index);
}

}  // namespace uroce::transport
