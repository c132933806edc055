// SPDX-License-Identifier: BSD-2-Clause
// The lock of one queue (send, receive, completion): held for tens of nanoseconds, and by one
// thread only in nearly every program, so letting go is a plain store. Whoever finds it taken for
// long sleeps a moment, because its holder may be waiting for this very processor.
#pragma once

#include <atomic>

namespace uroce::engine {

inline void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() {
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  [[nodiscard]] bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  [[gnu::cold]] void wait();

  std::atomic<bool> taken_{false};
};

}  // namespace uroce::engine
