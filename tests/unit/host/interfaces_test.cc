// SPDX-License-Identifier: BSD-2-Clause
// Against the kernel, in network namespaces that end with the test.
#include "host/interfaces.h"

#include <gmock/gmock.h>
#include <poll.h>

#include "host/address_monitor.h"
#include "host/gid_table.h"
#include "host/host_identity.h"
#include "posix/interface.h"
#include "unit/host/support.h"

namespace uroce::host {
namespace {

using test::gid;
using test::in_new_network;
using test::ip;
using testing::ElementsAre;

constexpr const char* kSkip = "needs root for a network namespace";

HostNetwork network_now() {
  auto network = read_host_network();
  EXPECT_TRUE(network) << network.error().message;
  return network ? *network : HostNetwork{};
}

TEST(Interfaces, LoopbackIsThere) {
  const HostNetwork network = network_now();
  const Interface* lo = network.find("lo");
  ASSERT_NE(lo, nullptr);
  EXPECT_TRUE(lo->loopback);
  EXPECT_GT(lo->mtu_bytes, 0u);
  EXPECT_EQ(lo->mac, MacAddress{});
}

TEST(Interfaces, AVethIsReadWithItsAddresses) {
  const bool ran = in_new_network([] {
    ASSERT_TRUE(ip("link add one address 02:00:00:00:00:01 mtu 9000 type veth peer name two"));
    ASSERT_TRUE(ip("link set one up"));
    ASSERT_TRUE(ip("link set two up"));
    ASSERT_TRUE(ip("address add 10.1.0.1/24 dev one"));
    ASSERT_TRUE(ip("address add fd01::1/64 dev one nodad"));
    const HostNetwork network = network_now();
    const Interface* one = network.find("one");
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->kind, "veth");
    EXPECT_EQ(one->mtu_bytes, 9000u);
    EXPECT_EQ(one->mac, (MacAddress{2, 0, 0, 0, 0, 1}));
    EXPECT_TRUE(one->running);
    EXPECT_FALSE(one->loopback);
    EXPECT_EQ(one->megabits_per_second, 10'000u);
    const std::vector<Gid> gids = gids_in_order(one->addresses);
    EXPECT_THAT(gids, testing::IsSupersetOf({gid("10.1.0.1"), gid("fd01::1")}));
  });
  if (!ran) GTEST_SKIP() << kSkip;
}

TEST(Interfaces, PendingAddressesAreWaitedFor) {
  const bool ran = in_new_network([] {
    ASSERT_TRUE(ip("link add one type veth peer name two"));
    ASSERT_TRUE(ip("link set two up"));
    ASSERT_TRUE(ip("link set one up"));
    ASSERT_TRUE(ip("address add fd01::1/64 dev one"));
    HostNetwork network = network_now();
    wait_for_pending_addresses(network, {"one"});
    const Interface* one = network.find("one");
    ASSERT_NE(one, nullptr);
    const std::vector<Gid> gids = gids_in_order(one->addresses);
    ASSERT_EQ(gids.size(), 2u);
    EXPECT_TRUE(gids[0].is_link_local());
    EXPECT_EQ(gids[1], gid("fd01::1"));
  });
  if (!ran) GTEST_SKIP() << kSkip;
}

TEST(Interfaces, AnInterfaceWithoutCarrierIsNotWaitedFor) {
  const bool ran = in_new_network([] {
    ASSERT_TRUE(ip("link add one type veth peer name two"));
    ASSERT_TRUE(ip("link set one up"));
    HostNetwork network = network_now();
    wait_for_pending_addresses(network, {"one", "none"});
    EXPECT_TRUE(network.find("one")->up);
    EXPECT_FALSE(network.find("one")->running);
  });
  if (!ran) GTEST_SKIP() << kSkip;
}

TEST(Interfaces, TheDefaultRouteWithTheLowestMetricCounts) {
  const bool ran = in_new_network([] {
    EXPECT_EQ(network_now().default_route, "");
    ASSERT_TRUE(ip("link add one type veth peer name two"));
    ASSERT_TRUE(ip("link set one up"));
    ASSERT_TRUE(ip("link set two up"));
    ASSERT_TRUE(ip("-6 route add default dev two"));
    EXPECT_EQ(network_now().default_route, "two");
    ASSERT_TRUE(ip("route add default dev one metric 200"));
    EXPECT_EQ(network_now().default_route, "one") << "IPv4's comes first";
    ASSERT_TRUE(ip("route add default dev two metric 100"));
    EXPECT_EQ(network_now().default_route, "two");
  });
  if (!ran) GTEST_SKIP() << kSkip;
}

TEST(Ethtool, SegmentationOfAVethIsSeen) {
  const bool ran = in_new_network([] {
    ASSERT_TRUE(ip("link add one type veth peer name two"));
    EXPECT_EQ(posix::is_offload_on("one", "tx-udp-segmentation"), true);
    EXPECT_EQ(posix::is_offload_on("one", "no-such-feature"), std::nullopt);
    EXPECT_EQ(posix::is_offload_on("none", "tx-udp-segmentation"), std::nullopt);
    EXPECT_EQ(posix::link_speed("none"), 0u);
  });
  if (!ran) GTEST_SKIP() << kSkip;
}

bool becomes_readable(const AddressMonitor& monitor) {
  pollfd waiting{monitor.descriptor(), POLLIN, 0};
  return poll(&waiting, 1, 5'000) == 1;
}

TEST(AddressMonitor, HearsOfAddressesAndLinks) {
  const bool ran = in_new_network([] {
    auto monitor = AddressMonitor::open();
    ASSERT_TRUE(monitor) << monitor.error().message;
    static_cast<void>(monitor->drain());
    EXPECT_FALSE(monitor->drain());
    ASSERT_TRUE(ip("address add 127.0.0.5/8 dev lo"));
    ASSERT_TRUE(becomes_readable(*monitor));
    const NetworkChange address = monitor->drain();
    EXPECT_TRUE(address.addresses);
    EXPECT_FALSE(address.links);
    ASSERT_TRUE(ip("link add one type veth peer name two"));
    ASSERT_TRUE(becomes_readable(*monitor));
    EXPECT_TRUE(monitor->drain().links);
    EXPECT_FALSE(monitor->drain());
  });
  if (!ran) GTEST_SKIP() << kSkip;
}

TEST(HostIdentity, TellsNamespacesApart) {
  const HostIdentity here = read_host_identity();
  EXPECT_NE(here.network_namespace, 0u);
  EXPECT_FALSE(here.boot_id.empty());
  HostIdentity there;
  if (!in_new_network([&] { there = read_host_identity(); })) GTEST_SKIP() << kSkip;
  EXPECT_NE(here.network_namespace, there.network_namespace);
  EXPECT_EQ(here.boot_id, there.boot_id);
}

}  // namespace
}  // namespace uroce::host
