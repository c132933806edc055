// SPDX-License-Identifier: BSD-2-Clause
// A lock held by a thread that cannot be cancelled meanwhile: programs do cancel threads
// that wait for events, and what runs under the lock must come to its end.
#pragma once

#include <pthread.h>

#include <mutex>

namespace uroce::cma {

template <typename Mutex>
class Locked {
 public:
  explicit Locked(Mutex& mutex) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former_);
    lock_ = std::unique_lock(mutex);
  }
  ~Locked() {
    lock_.unlock();
    pthread_setcancelstate(former_, nullptr);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  int former_ = PTHREAD_CANCEL_ENABLE;
  std::unique_lock<Mutex> lock_;
};

}  // namespace uroce::cma
