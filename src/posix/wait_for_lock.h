// SPDX-License-Identifier: BSD-2-Clause
// Locks that processes hold for a moment are tried and not waited for: one that was stopped while
// it held such a lock must not keep the others without a word.
#pragma once

#include <ctime>

namespace uroce::posix {

// Once a millisecond, for a second. False: nobody let go.
template <typename TryLock>
[[nodiscard]] bool wait_for_lock(TryLock try_lock) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int attempt = 0; attempt < 1'000; ++attempt) {
    if (try_lock()) return true;
    nanosleep(&kPause, nullptr);
  }
  return false;
}

}  // namespace uroce::posix
