// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/due_timer.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace uroce::datapath::tap {

Result<DueTimer> DueTimer::create(int watched_descriptor) {
  DueTimer made;
  made.epoll_ = posix::Descriptor(epoll_create1(EPOLL_CLOEXEC));
  made.timer_ = posix::Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  epoll_event readable{};
  readable.events = EPOLLIN;
  if (epoll_ctl(made.epoll_.get(), EPOLL_CTL_ADD, watched_descriptor, &readable) != 0 ||
      epoll_ctl(made.epoll_.get(), EPOLL_CTL_ADD, made.timer_.get(), &readable) != 0) {
    return Error{errno, std::string("no timer for delayed packets: ") + std::strerror(errno)};
  }
  return made;
}

void DueTimer::set(Instant when) {
  if (when == set_for_) return;
  set_for_ = when;
  itimerspec time{};
  if (when != Instant::never()) {
    const std::int64_t ns = std::max<std::int64_t>(when.ns, 1);  // 0 would stop it
    time.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr);
}

void DueTimer::close() {
  epoll_.close();
  timer_.close();
}

}  // namespace uroce::datapath::tap
