// SPDX-License-Identifier: BSD-2-Clause
// While one is alive, its thread is not cancelled. Of a NIC's calls POSIX and the man pages of
// verbs know no cancellation point, but many of the system calls behind ours are one, and a thread
// that ended in such a call would leave the lock taken that it was made under, for good.
//
//   const posix::Uncancelled whole;
//   sendmmsg(...);
//
// Costs two calls of a few nanoseconds, so it stands where a system call is made anyway.
#pragma once

#include <pthread.h>

namespace uroce::posix {

class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former_); }
  ~Uncancelled() { pthread_setcancelstate(former_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int former_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace uroce::posix
