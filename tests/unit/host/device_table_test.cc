// SPDX-License-Identifier: BSD-2-Clause
#include "host/device_table.h"

#include <gmock/gmock.h>

#include "host/port_attributes.h"
#include "unit/host/support.h"

namespace uroce::host {
namespace {

using test::gid;
using testing::ElementsAre;
using testing::HasSubstr;

const HostIdentity kHost{"0123", "boot", 4026531840};

Interface interface(const char* name, int index, MacAddress mac, const char* address) {
  Interface result;
  result.name = name;
  result.index = index;
  result.mac = mac;
  result.mtu_bytes = 1500;
  result.up = result.running = true;
  if (*address != '\0') result.addresses.push_back({.address = {gid(address), 24}});
  return result;
}

constexpr MacAddress kVendorMac = {0x00, 0x1b, 0x21, 1, 2, 3};
constexpr MacAddress kLocalMac = {0x02, 0x42, 0xac, 0x11, 0, 2};

HostNetwork two_interfaces() {
  HostNetwork network;
  network.interfaces = {
      interface("lo", 1, {}, "127.0.0.1"), interface("eth0", 2, kVendorMac, "192.0.2.2"),
      interface("eth1", 3, kLocalMac, "198.51.100.2"), interface("idle0", 4, kLocalMac, "")};
  network.interfaces[0].loopback = true;
  network.default_route = "eth1";
  return network;
}

std::vector<std::string> netdevs(const Config& config, const HostNetwork& network) {
  const auto devices = make_device_table(config, network, kHost);
  EXPECT_TRUE(devices) << devices.error().message;
  std::vector<std::string> names;
  if (devices) {
    for (const Device& device : *devices) names.push_back(device.netdev);
  }
  return names;
}

TEST(DeviceTable, OneDeviceOnTheInterfaceOfTheDefaultRoute) {
  EXPECT_THAT(netdevs({}, two_interfaces()), ElementsAre("eth1"));
}

TEST(DeviceTable, OnLoopbackWithoutADefaultRoute) {
  HostNetwork network = two_interfaces();
  network.default_route.clear();
  EXPECT_THAT(netdevs({}, network), ElementsAre("lo"));
}

TEST(DeviceTable, NamedInterfacesInTheirOrder) {
  Config config;
  config.netdevs = {"eth0", "lo"};
  const auto devices = make_device_table(config, two_interfaces(), kHost);
  ASSERT_TRUE(devices);
  EXPECT_EQ((*devices)[0].name, "uroce0");
  EXPECT_EQ((*devices)[0].netdev, "eth0");
  EXPECT_EQ((*devices)[1].name, "uroce1");
  EXPECT_EQ((*devices)[1].netdev, "lo");
}

TEST(DeviceTable, AllMeansThoseWithAnAddressTheDefaultOneFirst) {
  Config config;
  config.all_netdevs = true;
  EXPECT_THAT(netdevs(config, two_interfaces()), ElementsAre("eth1", "eth0", "lo"));
}

TEST(DeviceTable, AMissingInterfaceIsNamedWithThoseThereAre) {
  Config config;
  config.netdevs = {"eth7"};
  const auto devices = make_device_table(config, two_interfaces(), kHost);
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().message, AllOf(HasSubstr("eth7"), HasSubstr("lo, eth0, eth1")));
}

TEST(DeviceTable, ConfiguredAddressesMakeADeviceWithoutAnInterface) {
  Config config;
  config.uplink = {UplinkKind::kDpdk, "net_memif0"};
  config.addresses = {*parse_prefix_address("10.0.0.1/24"), *parse_prefix_address("fe80::1/64")};
  const auto devices = make_device_table(config, two_interfaces(), kHost);
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ((*devices)[0].netdev, "");
  EXPECT_TRUE((*devices)[0].active);
  EXPECT_THAT((*devices)[0].gids, ElementsAre(gid("fe80::1"), gid("10.0.0.1")));
}

TEST(DeviceTable, ADpdkPortIsOnTheInterfaceOfItsArguments) {
  Config config;
  config.uplink = {UplinkKind::kDpdk, "net_af_packet0,iface=eth0,qdisc_bypass=1"};
  EXPECT_THAT(netdevs(config, two_interfaces()), ElementsAre("eth0"));
  config.uplink.dpdk_spec = "net_memif0";
  const auto devices = make_device_table(config, two_interfaces(), kHost);
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().message, HasSubstr("--address"));
}

TEST(DeviceTable, ADpdkPortOnAnInterfaceThatIsNotThereSaysSo) {
  Config config;
  const auto refusal = [&config](const char* spec) {
    config.uplink = {UplinkKind::kDpdk, spec};
    const auto devices = make_device_table(config, two_interfaces(), kHost);
    return devices ? std::string("taken") : devices.error().message;
  };
  EXPECT_THAT(refusal("net_af_packet0,iface=nope"),
              AllOf(HasSubstr("no interface nope"), HasSubstr("lo, eth0, eth1")));
  EXPECT_THAT(refusal("net_af_xdp0"), HasSubstr("say which interface, as in net_af_xdp0,iface="));
  EXPECT_THAT(refusal("net_tap0,iface=dtap0"), HasSubstr("--address")) << "it makes dtap0";
}

TEST(DeviceTable, WhatLoopbackStandsInForIsKnown) {
  HostNetwork network = two_interfaces();
  EXPECT_THAT(passed_over({}, network), testing::IsEmpty());
  network.default_route.clear();
  network.interfaces.push_back(interface("eth2", 5, kLocalMac, "fe80::2"));
  EXPECT_THAT(passed_over({}, network), ElementsAre("eth0", "eth1"));
  network.interfaces[1].running = false;
  EXPECT_THAT(passed_over({}, network), ElementsAre("eth1"));
  Config config;
  config.netdevs = {"lo"};
  EXPECT_THAT(passed_over(config, network), testing::IsEmpty()) << "it was asked for";
}

std::uint64_t guid_of(const char* netdev, const HostIdentity& identity) {
  Config config;
  config.netdevs = {netdev};
  return make_device_table(config, two_interfaces(), identity)->front().node_guid;
}

TEST(NodeGuid, IsTheVendorsWhereItIsUnique) {
  EXPECT_EQ(guid_of("eth0", kHost), 0x021b'21ff'fe01'0203u);
}

TEST(NodeGuid, DiffersBetweenHostsNamespacesAndInterfacesElsewhere) {
  const HostIdentity other_machine{"4567", "boot", kHost.network_namespace};
  const HostIdentity other_boot{kHost.machine_id, "other", kHost.network_namespace};
  const HostIdentity other_namespace{kHost.machine_id, kHost.boot_id, 4026532000};
  for (const char* netdev : {"lo", "eth1"}) {
    const std::uint64_t guid = guid_of(netdev, kHost);
    EXPECT_NE(guid, 0u);
    EXPECT_EQ(guid, guid_of(netdev, kHost));
    EXPECT_NE(guid, guid_of(netdev, other_machine));
    EXPECT_NE(guid, guid_of(netdev, other_boot));
    EXPECT_NE(guid, guid_of(netdev, other_namespace));
    EXPECT_EQ(guid >> 56 & 2, 0u) << "it must not look like a vendor's";
  }
  EXPECT_NE(guid_of("lo", kHost), guid_of("eth1", kHost));
}

TEST(NodeGuid, IsNeverTwiceInOneTable) {
  HostNetwork network = two_interfaces();
  network.interfaces[2].mac = kVendorMac;  // a bridge over eth0
  Config config;
  config.netdevs = {"eth0", "eth1"};
  const auto devices = make_device_table(config, network, kHost);
  EXPECT_NE((*devices)[0].node_guid, (*devices)[1].node_guid);
}

TEST(PortAttributes, PathMtuLeavesRoomForTheHeaders) {
  EXPECT_EQ(port_path_mtu(65536), 4096);
  EXPECT_EQ(port_path_mtu(9000), 4096);
  EXPECT_EQ(port_path_mtu(4192), 4096);
  EXPECT_EQ(port_path_mtu(4191), 2048);
  EXPECT_EQ(port_path_mtu(1500), 1024);
  EXPECT_EQ(port_path_mtu(68), 256);
}

TEST(PortAttributes, RateIsTheFastestThatTheInterfaceReaches) {
  EXPECT_EQ(port_rate(1'000).text, "2.5 Gb/sec (1X SDR)");
  EXPECT_EQ(port_rate(10'000).text, "10 Gb/sec (4X SDR)");
  EXPECT_EQ(port_rate(99'999).text, "50 Gb/sec (1X HDR)");
  EXPECT_EQ(port_rate(800'000).text, "400 Gb/sec (4X NDR)");
  EXPECT_EQ(port_rate(0).text, "100 Gb/sec (4X EDR)");
}

}  // namespace
}  // namespace uroce::host
