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
using testing::Not;
using testing::StartsWith;

// Holds a port without sharing it, as any program that is not ours.
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

TEST(PortHolder, IsNamedByUserAndProcess) {
  const Holder holder;
  const auto found = udp::find_port_holder(holder.port());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->uid, getuid());
  EXPECT_THAT(found->process, HasSubstr("pid " + std::to_string(getpid())));
}

TEST(PortHolder, OfAFreePortIsNobody) {
  std::uint16_t port;
  {
    const Holder holder;
    port = holder.port();
  }
  EXPECT_FALSE(udp::find_port_holder(port));
}

TEST(PortHolder, OfAnotherUserCannotShare) {
  EXPECT_THAT(
      udp::explain_holder({4'000'000, "pid 7 (ib_write_bw)"}, 1000),
      AllOf(StartsWith("uid 4000000, pid 7 (ib_write_bw);"),
            HasSubstr("one user can share it (this one is uid 1000)"), HasSubstr("--uplink none")));
}

TEST(PortHolder, OfTheSameUserIsNoProgramOfOurs) {
  EXPECT_THAT(udp::explain_holder({4'000'000, "pid 7 (python3)"}, 4'000'000),
              AllOf(HasSubstr("pid 7 (python3), which does not share it"),
                    HasSubstr("--uplink none"), Not(HasSubstr("one user"))));
}

TEST(PortHolder, MayBeTheKernelWhereNoProcessIsSeen) {
  EXPECT_THAT(udp::explain_holder({0, ""}, 0), HasSubstr("the kernel itself"));
  EXPECT_THAT(udp::explain_holder({0, ""}, 1000), HasSubstr("the kernel itself"));
  EXPECT_THAT(udp::explain_holder({0, "pid 7 (python3)"}, 0), Not(HasSubstr("kernel")));
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
                    HasSubstr("pid " + std::to_string(getpid())), HasSubstr("does not share it")));
  EXPECT_EQ(link.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace uroce::datapath::test
