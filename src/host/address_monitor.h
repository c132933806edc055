// SPDX-License-Identifier: BSD-2-Clause
// Hears of changes to links and addresses of this network namespace, for port and GID events. Put
// `descriptor()` into an epoll; when it is readable, `drain()` says what has changed, and
// read_host_network() what it has changed to. Never blocks.
#pragma once

#include "base/result.h"
#include "host/files.h"

namespace uroce::host {

struct NetworkChange {
  bool links = false;
  bool addresses = false;
  explicit operator bool() const { return links || addresses; }
};

class AddressMonitor {
 public:
  [[nodiscard]] static Result<AddressMonitor> open();

  [[nodiscard]] int descriptor() const { return socket_.get(); }

  // Reads everything there is. Both are set when the kernel had to drop messages.
  NetworkChange drain();

 private:
  explicit AddressMonitor(posix::Descriptor socket) : socket_(std::move(socket)) {}
  posix::Descriptor socket_;
};

}  // namespace uroce::host
