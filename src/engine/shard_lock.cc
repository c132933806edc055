// SPDX-License-Identifier: BSD-2-Clause
#include "engine/shard_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "engine/spin_lock.h"

namespace uroce::engine {
namespace {

// A turn is short; sleeping for one would cost more than waiting.
constexpr int kSpinsBeforeSleep = 200;

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, nullptr,
                 nullptr, 0);
}

}  // namespace

void ShardLock::wait_and_lock() {
  UROCE_CHECK(!is_mine());
  for (int i = 0; i < kSpinsBeforeSleep; ++i) {
    pause_processor();
    if (word_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
  }
  while (word_.exchange(kHeldAndWaitedFor, std::memory_order_acquire) != kFree) {
    futex(word_, FUTEX_WAIT_PRIVATE, kHeldAndWaitedFor);
  }
  owner_.store(pthread_self(), std::memory_order_relaxed);
}

void ShardLock::wake() { futex(word_, FUTEX_WAKE_PRIVATE, 1); }

}  // namespace uroce::engine
