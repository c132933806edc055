// SPDX-License-Identifier: BSD-2-Clause
// The kernel's tables, in a network namespace of our own with one end of a veth pair and a
// neighbour that was entered by hand.
#include "datapath/neighbour/kernel_resolver.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace uroce::datapath {
namespace {

constexpr const char* kSetUp =
    "ip link add va type veth peer name vb && ip link set vb up && ip link set va up && ip addr "
    "add 10.0.0.1/24 dev va "
    "&& ip route add default via 10.0.0.254 dev va "
    "&& ip neigh add 10.0.0.254 lladdr 02:00:00:00:00:fe dev va nud permanent "
    "&& ip -6 addr add fd00::1/64 dev va nodad "
    "&& ip -6 neigh add fd00::2 lladdr 02:00:00:00:00:06 dev va nud permanent";

class KernelResolvers : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) {
      GTEST_SKIP() << "needs root for a network namespace";
    }
    if (std::system(kSetUp) != 0) GTEST_SKIP() << "this kernel has no veth interfaces";
    resolver_ = std::make_unique<KernelResolver>(if_nametoindex("va"), false);
  }

  std::unique_ptr<KernelResolver> resolver_;
};

TEST_F(KernelResolvers, ADestinationBeyondARouterGoesToTheRoutersMac) {
  Path path{.source = {}, .destination = ipv4_mapped({192, 0, 2, 1})};
  ASSERT_EQ(resolver_->open_path(path), 0);
  MacAddress mac;
  ASSERT_TRUE(resolver_->find(path, mac));
  EXPECT_EQ(mac, (MacAddress{{2, 0, 0, 0, 0, 0xfe}}));
}

TEST_F(KernelResolvers, AnIpv6NeighbourIsFound) {
  Gid destination{{0xfd}};
  destination.bytes[15] = 2;
  Path path{.source = {}, .destination = destination};
  ASSERT_EQ(resolver_->open_path(path), 0);
  MacAddress mac;
  ASSERT_TRUE(resolver_->find(path, mac));
  EXPECT_EQ(mac, (MacAddress{{2, 0, 0, 0, 0, 6}}));
}

TEST_F(KernelResolvers, AnAddressOfThisHostIsNotOnTheWire) {
  Path path{.source = {}, .destination = ipv4_mapped({10, 0, 0, 1})};
  EXPECT_EQ(resolver_->open_path(path), EHOSTUNREACH);
}

TEST_F(KernelResolvers, ANeighbourThatAppearsLaterIsFoundAtOneOfTheNextTurns) {
  Path path{.source = {}, .destination = ipv4_mapped({10, 0, 0, 9})};
  ASSERT_EQ(resolver_->open_path(path), 0);
  MacAddress mac;
  EXPECT_FALSE(resolver_->find(path, mac));
  ASSERT_EQ(std::system("ip neigh replace 10.0.0.9 lladdr 02:00:00:00:00:09 dev va"), 0);
  std::array<std::byte, 128> unused;
  EXPECT_EQ(resolver_->poll_frame(Instant{} + milliseconds(10), unused), 0u);
  ASSERT_TRUE(resolver_->find(path, mac));
  EXPECT_EQ(mac, (MacAddress{{2, 0, 0, 0, 0, 9}}));
}

// A datagram that did not wait would be lost while the answer is under way, which it may be for
// long.
TEST_F(KernelResolvers, WhatIsToBeSentWaitsForASecond) {
  Path path{.source = {}, .destination = ipv4_mapped({10, 0, 0, 9})};
  ASSERT_EQ(resolver_->open_path(path), 0);
  std::array<std::byte, 128> unused;
  Instant now{};
  for (const Instant end = now + milliseconds(1'000); now < end; now = now + milliseconds(50)) {
    static_cast<void>(resolver_->poll_frame(now, unused));
    ASSERT_TRUE(resolver_->is_expected(path)) << now.ns;
  }
  static_cast<void>(resolver_->poll_frame(now + milliseconds(500), unused));
  EXPECT_FALSE(resolver_->is_expected(path));
}

TEST(KernelResolver, OnLoopbackEveryAddressIsReachedByZeros) {
  KernelResolver resolver(1, true);
  Path path{.source = {}, .destination = ipv4_mapped({127, 0, 0, 5})};
  ASSERT_EQ(resolver.open_path(path), 0);
  MacAddress mac{{1, 1, 1, 1, 1, 1}};
  ASSERT_TRUE(resolver.find(path, mac));
  EXPECT_EQ(mac, MacAddress{});
}

}  // namespace
}  // namespace uroce::datapath
