// SPDX-License-Identifier: BSD-2-Clause
#include "host/udp_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "posix/descriptor.h"

namespace uroce::host {
namespace {

// Has a port of all addresses, IPv6 ones too, as uroce's sockets do.
struct Holder {
  explicit Holder(int shares) {
    const int off = 0;
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &shares, sizeof shares);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(bind(socket.get(), generic, bytes), 0);
    EXPECT_EQ(getsockname(socket.get(), generic, &bytes), 0);
    port = ntohs(address.sin6_port);
  }
  posix::Descriptor socket{::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  std::uint16_t port = 0;
};

TEST(UdpPort, IsSharedWhereItsHolderSaysSo) {
  EXPECT_TRUE(is_udp_port_shared(Holder(1).port));
  const Holder alone(0), shares(1);
  EXPECT_FALSE(is_udp_port_shared(alone.port));
  EXPECT_TRUE(is_udp_port_shared(shares.port));
}

}  // namespace
}  // namespace uroce::host
