// SPDX-License-Identifier: BSD-2-Clause
// The lock of a shard. Posts and polls only try it; control verbs and the worker may wait.
//
// While it is held there is no malloc, free, mmap, munmap or log call: UCX and libfabric hook
// munmap and come back into ibv_dereg_mr, which waits for this lock. A thread that waits for a lock
// it holds itself is therefore our own fault, and checked.
//
// Taking and letting go are sequentially consistent because doorbell.h depends on it: a thread that
// rang and then failed to take the lock must be seen by the holder, who lets go and then looks.
//
// A forked child leaves the lock taken for good (`abandon`): every try fails there, at no cost to
// anybody else.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace uroce::engine {

class ShardLock {
 public:
  ShardLock() = default;
  ShardLock(const ShardLock&) = delete;
  ShardLock& operator=(const ShardLock&) = delete;

  [[nodiscard]] bool try_lock() {
    std::uint32_t expected = kFree;
    if (!word_.compare_exchange_strong(expected, kHeld, std::memory_order_seq_cst)) {
      return false;
    }
    owner_.store(pthread_self(), std::memory_order_relaxed);
    return true;
  }
  void lock() {
    if (!try_lock()) wait_and_lock();
  }
  void unlock() {
    owner_.store(pthread_t{}, std::memory_order_relaxed);
    if (word_.exchange(kFree, std::memory_order_seq_cst) == kHeldAndWaitedFor) [[unlikely]]
      wake();
  }
  [[nodiscard]] bool is_mine() const {
    return owner_.load(std::memory_order_relaxed) == pthread_self();
  }

  // In a forked child, whose one thread is the caller.
  void abandon() {
    word_.store(kHeld, std::memory_order_relaxed);
    owner_.store(pthread_t{}, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kHeldAndWaitedFor = 2;

  [[gnu::cold]] void wait_and_lock();
  [[gnu::cold]] void wake();

  alignas(64) std::atomic<std::uint32_t> word_{kFree};
  std::atomic<pthread_t> owner_{};
};

}  // namespace uroce::engine
