// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/port_owner.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "endpoint.h"

namespace uroce::datapath::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Holds a port without sharing it, as another user's process would.
class Holder {
 public:
  Holder() : descriptor_(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    socklen_t bytes = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(descriptor_.get(), generic, bytes), 0);
    EXPECT_EQ(getsockname(descriptor_.get(), generic, &bytes), 0);
    port_ = ntohs(address.sin6_port);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  posix::Descriptor descriptor_;
  std::uint16_t port_ = 0;
};

TEST(PortOwner, IsNamedByUserAndProcess) {
  const Holder holder;
  EXPECT_THAT(udp::describe_port_owner(holder.port()),
              AllOf(HasSubstr("uid " + std::to_string(getuid())),
                    HasSubstr("pid " + std::to_string(getpid()))));
}

TEST(PortOwner, OfAFreePortIsNobody) {
  std::uint16_t port;
  {
    const Holder holder;
    port = holder.port();
  }
  EXPECT_EQ(udp::describe_port_owner(port), "");
}

TEST(UdpDatapath, SaysInOneLineWhoHoldsThePort) {
  const Holder holder;
  const TemporaryFolder folder;
  auto directory = Directory::join({.folder = folder.path(), .device = "uroce0"});
  ASSERT_TRUE(directory);
  const auto link = UdpDatapath::create(**directory, {.port = holder.port()});
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, EADDRINUSE);
  EXPECT_THAT(link.error().message,
              AllOf(HasSubstr("UDP port " + std::to_string(holder.port())),
                    HasSubstr("pid " + std::to_string(getpid())), HasSubstr("one user")));
  EXPECT_EQ(link.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace uroce::datapath::test
