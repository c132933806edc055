// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/port_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace uroce::datapath {
namespace {

// Length and content of an abstract name: a zero byte, then the name, cut where it is too long.
socklen_t make_address(const std::string& identity, sockaddr_un& address) {
  const std::string name = "uroce-dpdk:" + identity;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  address.sun_family = AF_UNIX;
  std::copy_n(name.begin(), length, address.sun_path + 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

std::string describe_owner(const sockaddr_un& address, socklen_t length) {
  const int asking = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ucred owner{};
  socklen_t bytes = sizeof owner;
  const bool known = asking >= 0 &&
                     connect(asking, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
                     getsockopt(asking, SOL_SOCKET, SO_PEERCRED, &owner, &bytes) == 0;
  if (asking >= 0) close(asking);
  return known ? "process " + std::to_string(owner.pid) : "another process";
}

}  // namespace

Result<std::unique_ptr<PortClaim>> PortClaim::take(const std::string& identity) {
  if (identity.empty()) return std::make_unique<PortClaim>(-1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return Error{errno, std::string("dpdk: socket: ") + strerror(errno)};
  auto claim = std::make_unique<PortClaim>(descriptor);
  sockaddr_un address{};
  const socklen_t length = make_address(identity, address);
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
      listen(descriptor, 1) == 0) {
    return claim;
  }
  if (errno != EADDRINUSE) {
    return Error{errno, "dpdk: cannot claim " + identity + ": " + strerror(errno)};
  }
  return Error{EBUSY, "dpdk: " + identity + " is in use by " + describe_owner(address, length)};
}

void PortClaim::release() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace uroce::datapath
