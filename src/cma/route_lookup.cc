// SPDX-License-Identifier: BSD-2-Clause
#include "cma/route_lookup.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "posix/descriptor.h"

namespace uroce::cma {

// A datagram socket that is connected sends nothing, but has an address.
int find_source(const Address& destination, Address& source) {
  const posix::Descriptor socket(
      ::socket(destination.is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return errno;
  sockaddr_storage place{};
  auto* const address = reinterpret_cast<sockaddr*>(&place);
  Address to = destination;
  if (to.port == 0) to.port = 1;
  if (::connect(socket.get(), address, to_sockaddr(to, &place)) != 0) return errno;
  socklen_t bytes = sizeof place;
  if (::getsockname(socket.get(), address, &bytes) != 0) return errno;
  const auto found = to_address(&place, bytes);
  if (!found) return EAFNOSUPPORT;
  source.gid = found->gid;
  source.is_ipv4 = found->is_ipv4;
  source.scope = found->scope;
  return 0;
}

}  // namespace uroce::cma
