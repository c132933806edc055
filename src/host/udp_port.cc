// SPDX-License-Identifier: BSD-2-Clause
// By trying: a socket of an address that nobody uses becomes a member of no group and gets no
// packet of anybody, but meets the same rules as one of all addresses.
#include "host/udp_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "posix/descriptor.h"

namespace uroce::host {
namespace {

constexpr in_addr_t kNobodysAddress = INADDR_LOOPBACK + (90U << 16);  // 127.90.0.1

}  // namespace

bool is_udp_port_shared(std::uint16_t port) {
  const posix::Descriptor probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(kNobodysAddress);
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno != EADDRINUSE;
}

}  // namespace uroce::host
