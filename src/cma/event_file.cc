// SPDX-License-Identifier: BSD-2-Clause
#include "cma/event_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>

namespace uroce::cma {

std::unique_ptr<EventFile> EventFile::open(int& program_end) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return nullptr;
  std::unique_ptr<EventFile> file(new EventFile(ends[1]));
  const auto place = place_of(ends[0]);
  if (!place) {
    close(ends[0]);
    return nullptr;
  }
  file->place_ = *place;
  program_end = ends[0];
  return file;
}

// Not by fstat, which the preloaded library answers for these descriptors.
std::optional<std::pair<dev_t, ino_t>> EventFile::place_of(int descriptor) {
  struct statx status {};
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_INO, &status) != 0) return std::nullopt;
  return std::pair(makedev(status.stx_dev_major, status.stx_dev_minor), ino_t{status.stx_ino});
}

bool EventFile::is_closed_by_program() const {
  pollfd end{own_end_.get(), 0, 0};
  return poll(&end, 1, 0) == 1 && (end.revents & (POLLHUP | POLLERR)) != 0;
}

void EventFile::push(const PendingEvent& event) {
  events_.push_back(event);
  put_token();
}

void EventFile::put_token() {
  if (has_token_) return;
  constexpr char kToken = 1;
  has_token_ = ::send(own_end_.get(), &kToken, sizeof kToken, MSG_NOSIGNAL) == sizeof kToken;
}

// Where another thread has read the byte, has_token_ stays, and that thread comes to pop().
void EventFile::take_token_back(int program_end) {
  if (!has_token_ || !events_.empty()) return;
  char token = 0;
  has_token_ = ::recv(program_end, &token, sizeof token, MSG_DONTWAIT) != sizeof token;
}

std::optional<PendingEvent> EventFile::pop() {
  has_token_ = false;
  if (events_.empty()) return std::nullopt;
  const PendingEvent event = events_.front();
  events_.pop_front();
  if (!events_.empty()) put_token();
  return event;
}

}  // namespace uroce::cma
