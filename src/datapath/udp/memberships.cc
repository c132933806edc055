// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/memberships.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace uroce::datapath::udp {
namespace {

int join_ipv4(int socket, const Gid& group, unsigned interface_index) {
  ip_mreqn request{};
  std::memcpy(&request.imr_multiaddr, group.bytes.data() + 12, sizeof request.imr_multiaddr);
  request.imr_ifindex = static_cast<int>(interface_index);
  return setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
}

int join_ipv6(int socket, const Gid& group, unsigned interface_index) {
  ipv6_mreq request{};
  std::memcpy(&request.ipv6mr_multiaddr, group.bytes.data(), sizeof request.ipv6mr_multiaddr);
  request.ipv6mr_interface = interface_index;
  return setsockopt(socket, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request);
}

}  // namespace

Memberships::Memberships(const std::string& interface)
    : interface_index_(if_nametoindex(interface.c_str())) {}

int Memberships::join(const Gid& group) {
  const bool is_ipv4 = group.is_ipv4();
  posix::Descriptor socket(::socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return errno;
  const int result = is_ipv4 ? join_ipv4(socket.get(), group, interface_index_)
                             : join_ipv6(socket.get(), group, interface_index_);
  if (result != 0) return errno;
  joined_.push_back({group, std::move(socket)});
  return 0;
}

void Memberships::leave(const Gid& group) {
  std::erase_if(joined_, [&group](const Membership& m) { return m.group == group; });
}

}  // namespace uroce::datapath::udp
