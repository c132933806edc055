// SPDX-License-Identifier: BSD-2-Clause
// A lock held by a thread that cannot be cancelled meanwhile: programs do cancel threads
// that wait for events, and what runs under the lock must come to its end.
#pragma once

#include <mutex>

#include "posix/uncancelled.h"

namespace uroce::cma {

template <typename Mutex>
class Locked {
 public:
  explicit Locked(Mutex& mutex) : lock_(mutex) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const posix::Uncancelled whole_;  // begun before the lock is taken, ended after
  std::unique_lock<Mutex> lock_;
};

}  // namespace uroce::cma
