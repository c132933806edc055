// SPDX-License-Identifier: BSD-2-Clause
#include "engine/spin_lock.h"

#include <ctime>

#include "posix/uncancelled.h"

namespace uroce::engine {

void SpinLock::wait() {
  const posix::Uncancelled whole;
  constexpr int kLooksBeforeSleep = 100;
  constexpr timespec kSleep{0, 20'000};
  for (int looks = 0;; ++looks) {
    if (looks < kLooksBeforeSleep) {
      pause_processor();
    } else {
      nanosleep(&kSleep, nullptr);
    }
    if (!taken_.load(std::memory_order_relaxed) && try_lock()) return;
  }
}

}  // namespace uroce::engine
