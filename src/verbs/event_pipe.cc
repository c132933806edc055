// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/event_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "posix/uncancelled.h"

namespace uroce::verbs {
namespace {

bool is_ready(int descriptor, short what) {
  pollfd ready{descriptor, what, 0};
  return poll(&ready, 1, 0) == 1 && (ready.revents & what) != 0;
}

}  // namespace

std::size_t EventPipe::page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

void EventPipe::open(int descriptor) {
  if (descriptor_ >= 0) return;
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", descriptor);
  descriptor_ = ::open(path.data(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  // Without /proc the description is shared; is_ready() then keeps us from blocking.
  if (descriptor_ < 0) descriptor_ = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

void EventPipe::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

std::size_t EventPipe::unread_bytes() const {
  int bytes = 0;
  return ioctl(descriptor_, FIONREAD, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

// A pipe takes and gives a page whole or not at all.
bool EventPipe::write_bytes(const void* event, std::size_t bytes) {
  const posix::Uncancelled whole;
  return is_ready(descriptor_, POLLOUT) &&
         ::write(descriptor_, event, bytes) == static_cast<ssize_t>(bytes);
}

std::size_t EventPipe::read_some(void* events, std::size_t at_most) {
  const posix::Uncancelled whole;
  if (!is_ready(descriptor_, POLLIN)) return 0;
  const ssize_t bytes = ::read(descriptor_, events, at_most);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace uroce::verbs
