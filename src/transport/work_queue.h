// SPDX-License-Identifier: BSD-2-Clause
// The ring under a send, receive or shared receive queue. One producer at a time (the application's
// posts, serialised by verbs), one reader (the core, under the shard's lock).
//
// A slot is outstanding from the post until the completion that covers it has been *polled*, as on
// a NIC, so exactly `capacity` work requests fit (ibv_post_send: ENOMEM for the next). Completions
// carry a pointer to `released` and how many slots they give back.
//
//   posted (application) >= next (core) >= released (application, in poll_cq)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace uroce::transport {

template <typename Wqe>
class WorkQueue {
 public:
  WorkQueue() = default;

  // `memory` holds ring_slots(capacity) slots of `stride` bytes and outlives the queue.
  void set_memory(std::span<std::byte> memory, std::uint32_t capacity, std::uint32_t stride) {
    memory_ = memory.data();
    capacity_ = capacity;
    stride_ = stride;
    mask_ = ring_slots(capacity) - 1;
  }
  static constexpr std::uint32_t ring_slots(std::uint32_t capacity) {
    std::uint32_t slots = 1;
    while (slots < capacity) slots *= 2;
    return slots;
  }

  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
  [[nodiscard]] Wqe& at(std::uint32_t index) const {
    return *reinterpret_cast<Wqe*>(memory_ + std::size_t{index & mask_} * stride_);
  }

  // Application side.
  [[nodiscard]] std::uint32_t free_slots() const {
    return capacity_ -
           (posted_.load(std::memory_order_relaxed) - released_.load(std::memory_order_acquire));
  }
  [[nodiscard]] std::uint32_t next_post() const { return posted_.load(std::memory_order_relaxed); }
  void post(std::uint32_t count) {
    posted_.store(posted_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }
  // The same for a poster who looks at the QP's state next: whoever enters ERR first writes the
  // state and then looks at posted(), so that one of the two sees the other.
  void post_before_look(std::uint32_t count) {
    posted_.store(posted_.load(std::memory_order_relaxed) + count, std::memory_order_seq_cst);
  }
  [[nodiscard]] std::atomic<std::uint32_t>& released() { return released_; }

  // Core side.
  [[nodiscard]] std::uint32_t posted() const { return posted_.load(std::memory_order_seq_cst); }

  // What is posted from `next` on goes on in `memory`, which is as in set_memory; it has to fit.
  // Nobody may post or take meanwhile.
  void move_to(std::span<std::byte> memory, std::uint32_t capacity, std::uint32_t next) {
    const std::byte* const before = memory_;
    const std::uint32_t mask_before = mask_;
    set_memory(memory, capacity, stride_);
    for (; next != posted(); ++next) {
      const std::byte* const slot = before + std::size_t{next & mask_before} * stride_;
      std::memcpy(static_cast<void*>(&at(next)), slot, stride_);
    }
  }

  // Empties the ring (QP to RESET); nobody may post or poll meanwhile.
  void reset() {
    posted_.store(0, std::memory_order_relaxed);
    released_.store(0, std::memory_order_relaxed);
  }

 private:
  std::byte* memory_ = nullptr;
  std::uint32_t capacity_ = 0;
  std::uint32_t stride_ = 0;
  std::uint32_t mask_ = 0;
  alignas(64) std::atomic<std::uint32_t> posted_{0};
  alignas(64) std::atomic<std::uint32_t> released_{0};
};

}  // namespace uroce::transport
