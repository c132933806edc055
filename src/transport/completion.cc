// SPDX-License-Identifier: BSD-2-Clause
// The rare operations on a completion queue: resizing it and taking a dead QP's entries out.
#include "transport/completion.h"

namespace uroce::transport {

void CompletionQueue::move_to(std::span<Cqe> ring, std::uint32_t capacity,
                              std::span<Instant> times) {
  const std::uint32_t head = head_.load(std::memory_order_relaxed);
  const std::uint32_t mask = static_cast<std::uint32_t>(ring.size()) - 1;
  for (std::uint32_t i = head; i != staged_; ++i) {
    ring[i & mask] = ring_[i & mask_];
    if (times_ != nullptr) times[i & mask] = times_[i & mask_];
  }
  set_memory(ring, capacity, times);
}

template <typename Keeps>
void CompletionQueue::purge_if_not(const Keeps& keeps) {
  const std::uint32_t head = head_.load(std::memory_order_relaxed);
  const std::uint32_t published = tail_.load(std::memory_order_relaxed);
  std::uint32_t kept = head;
  std::uint32_t kept_published = head;
  for (std::uint32_t i = head; i != staged_; ++i) {
    const Cqe& entry = ring_[i & mask_];
    if (!keeps(entry)) continue;
    if (times_ != nullptr) times_[kept & mask_] = times_[i & mask_];
    ring_[kept++ & mask_] = entry;
    // Counts what lay before `published`; staged ones stay staged.
    if (static_cast<std::int32_t>(i - published) < 0) kept_published = kept;
  }
  staged_ = kept;
  tail_.store(kept_published, std::memory_order_release);
  // Which of them were announced is not known any more: rather twice than never.
  announced_until_ = head;
  solicited_until_ = kept_published;
}

void CompletionQueue::purge(Qpn qpn, std::atomic<std::uint32_t>* shared) {
  purge_if_not([=](const Cqe& entry) {
    if (entry.qpn != qpn) return true;
    if (shared != nullptr && entry.released == shared) {
      shared->fetch_add(entry.release_count, std::memory_order_release);
    }
    return false;
  });
}

void CompletionQueue::purge(const std::atomic<std::uint32_t>& released) {
  purge_if_not([&released](const Cqe& entry) { return entry.released != &released; });
}

}  // namespace uroce::transport
