// SPDX-License-Identifier: BSD-2-Clause
// The lock of a queue, held. In the child of a fork it may have been held by another thread of the
// parent's, which the child has not: then nobody waits for it, and there is nothing to be done.
#pragma once

#include "engine/engine.h"
#include "engine/spin_lock.h"

namespace uroce::verbs {

// False: it never will be had.
[[nodiscard]] inline bool lock_queue(engine::SpinLock& lock, const engine::Engine& engine) {
  if (lock.try_lock()) [[likely]]
    return true;
  if (engine.is_abandoned()) return false;
  lock.lock();
  return true;
}

class QueueGuard {
 public:
  QueueGuard(engine::SpinLock& lock, const engine::Engine& engine)
      : lock_(lock), is_held_(lock_queue(lock, engine)) {}
  ~QueueGuard() {
    if (is_held_) lock_.unlock();
  }
  QueueGuard(const QueueGuard&) = delete;
  QueueGuard& operator=(const QueueGuard&) = delete;

  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  engine::SpinLock& lock_;
  const bool is_held_;
};

}  // namespace uroce::verbs
