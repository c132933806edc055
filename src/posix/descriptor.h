// SPDX-License-Identifier: BSD-2-Clause
// Owns one file descriptor and closes it. Closing does not change errno's meaning for whoever
// reports the failure of another call: it is left as it was.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "posix/uncancelled.h"

namespace uroce::posix {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ < 0) return;
    const int saved_errno = errno;
    const Uncancelled whole;  // a destructor cannot be left half-way
    ::close(std::exchange(fd_, -1));
    errno = saved_errno;
  }

 private:
  int fd_ = -1;
};

}  // namespace uroce::posix
