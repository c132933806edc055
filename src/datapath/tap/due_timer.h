// SPDX-License-Identifier: BSD-2-Clause
// One descriptor that becomes readable when another does, or when a time has come: an epoll
// instance over that descriptor and a timer.
//
// The engine's helper sleeps on descriptors, and looks only then anew for how long it may. A packet
// that an application's turn has put aside meanwhile must wake it by itself.
#pragma once

#include "base/result.h"
#include "posix/descriptor.h"
#include "uroce/time.h"

namespace uroce::datapath::tap {

class DueTimer {
 public:
  [[nodiscard]] static Result<DueTimer> create(int watched_descriptor);

  [[nodiscard]] int descriptor() const { return epoll_.get(); }
  // On CLOCK_MONOTONIC; `never` stops it. A system call where that is another time than before.
  void set(Instant when);
  void close();

 private:
  posix::Descriptor epoll_, timer_;
  Instant set_for_ = Instant::never();
};

}  // namespace uroce::datapath::tap
