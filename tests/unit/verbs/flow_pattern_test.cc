// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/flow_pattern.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "unit/verbs/raw_fixture.h"

namespace uroce::verbs {
namespace {

using steering::classify;
using steering::Pattern;
using test::FrameBuilder;
using test::kMacA;
using test::kMacB;

constexpr test::Ipv4Address kFrom{10, 0, 0, 1};
constexpr test::Ipv4Address kTo{10, 0, 0, 2};
constexpr test::Ipv6Address kFrom6{0xfd, 1};
constexpr test::Ipv6Address kTo6{0xfd, 2};

bool matches(FlowAttributes rule, const FrameBuilder& frame) {
  Pattern pattern;
  EXPECT_EQ(to_pattern(rule.list(), pattern), 0);
  return pattern.matches(classify(frame.bytes()));
}
int error_of(FlowAttributes rule) {
  Pattern pattern;
  return to_pattern(rule.list(), pattern);
}

FrameBuilder to_b() { return {kMacB, kMacA}; }

TEST(FlowPattern, WithoutASpecMatchesEverything) {
  FlowAttributes rule;
  EXPECT_TRUE(matches(rule, to_b().type(1)));
}

TEST(FlowPattern, OfEthernet) {
  auto spec = spec_of<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH);
  std::ranges::copy(kMacB, spec.val.dst_mac);
  std::ranges::fill(spec.mask.dst_mac, std::uint8_t{0xff});
  FlowAttributes rule;
  rule.add(spec);
  EXPECT_TRUE(matches(rule, to_b().type(1)));
  EXPECT_TRUE(matches(rule, to_b().vlan(7).type(1)));
  EXPECT_FALSE(matches(rule, FrameBuilder(kMacA, kMacB).type(1)));
}

TEST(FlowPattern, OfATagIsNotOfAFrameWithout) {
  auto spec = spec_of<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH);
  spec.mask.vlan_tag = to_big<std::uint16_t>(0x0fff);
  FlowAttributes rule;
  rule.add(spec);
  EXPECT_TRUE(matches(rule, to_b().vlan(0xa000).type(1)));  // VLAN ID 0
  EXPECT_FALSE(matches(rule, to_b().vlan(0xa001).type(1)));
  EXPECT_FALSE(matches(rule, to_b().type(1)));
}

TEST(FlowPattern, OfIpv4AndUdp) {
  auto ip = spec_of<ibv_flow_spec_ipv4>(IBV_FLOW_SPEC_IPV4);
  std::memcpy(&ip.val.src_ip, kFrom.data(), 4);
  std::memcpy(&ip.mask.src_ip, "\xff\xff\xff\x00", 4);
  auto udp = spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_UDP);
  udp.val.dst_port = to_big<std::uint16_t>(53);
  udp.mask.dst_port = 0xffff;
  FlowAttributes rule;
  rule.add(ip).add(udp);
  EXPECT_TRUE(matches(rule, to_b().ipv4(kFrom, kTo, test::kUdp).ports(1, 53)));
  EXPECT_TRUE(matches(rule, to_b().ipv4({10, 0, 0, 99}, kTo, test::kUdp).ports(1, 53)));
  EXPECT_FALSE(matches(rule, to_b().ipv4({10, 0, 1, 1}, kTo, test::kUdp).ports(1, 53)));
  EXPECT_FALSE(matches(rule, to_b().ipv4(kFrom, kTo, test::kUdp).ports(53, 1)));
  EXPECT_FALSE(matches(rule, to_b().ipv4(kFrom, kTo, test::kTcp).ports(1, 53)));
  // What lies where the port would is of a fragment's payload.
  EXPECT_FALSE(matches(rule, to_b().ipv4(kFrom, kTo, test::kUdp, 0x2001).ports(1, 53)));
  EXPECT_FALSE(matches(rule, to_b().type(0x0800)));
}

TEST(FlowPattern, OfTheOtherFieldsOfIpv4) {
  const auto with = [](auto change) {
    auto spec = spec_of<ibv_flow_spec_ipv4_ext>(IBV_FLOW_SPEC_IPV4_EXT);
    change(spec);
    FlowAttributes rule;
    rule.add(spec);
    return matches(rule, to_b().ipv4(kFrom, kTo, test::kUdp));
  };
  const auto field = [&](auto member, std::uint8_t value) {
    return with([&](ibv_flow_spec_ipv4_ext& spec) {
      spec.val.*member = value;
      spec.mask.*member = member == &ibv_flow_ipv4_ext_filter::flags ? 6 : 0xff;
    });
  };
  using Filter = ibv_flow_ipv4_ext_filter;
  EXPECT_TRUE(field(&Filter::proto, test::kUdp) && !field(&Filter::proto, test::kTcp));
  EXPECT_TRUE(field(&Filter::tos, 0x1c) && !field(&Filter::tos, 0x1d));
  EXPECT_TRUE(field(&Filter::ttl, 63) && !field(&Filter::ttl, 64));
  EXPECT_TRUE(field(&Filter::flags, 2) && !field(&Filter::flags, 4));
}

TEST(FlowPattern, OfIpv6AndTcp) {
  auto ip = spec_of<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6);
  std::ranges::copy(kTo6, ip.val.dst_ip);
  std::ranges::fill(ip.mask.dst_ip, std::uint8_t{0xff});
  ip.val.flow_label = to_big<std::uint32_t>(0x1'2345);
  ip.mask.flow_label = to_big<std::uint32_t>(0xf'ffff);
  FlowAttributes rule;
  rule.add(ip).add(spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_TCP));
  EXPECT_TRUE(matches(rule, to_b().ipv6(kFrom6, kTo6, test::kTcp).ports(1, 2)));
  EXPECT_FALSE(matches(rule, to_b().ipv6(kTo6, kFrom6, test::kTcp).ports(1, 2)));
  EXPECT_FALSE(matches(rule, to_b().ipv6(kFrom6, kTo6, test::kUdp).ports(1, 2)));
}

// Bits of the value that the mask leaves out do not count, not even as contradictions.
TEST(FlowPattern, ValuesOutsideOfTheMaskDoNotCount) {
  auto eth = spec_of<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH);
  eth.val.ether_type = to_big<std::uint16_t>(0x1234);
  FlowAttributes rule;
  rule.add(eth).add(spec_of<ibv_flow_spec_ipv4>(IBV_FLOW_SPEC_IPV4));
  EXPECT_TRUE(matches(rule, to_b().ipv4(kFrom, kTo, test::kUdp)));
}

TEST(FlowPattern, SpecsThatContradictEachOtherAreInvalid) {
  const auto v4 = spec_of<ibv_flow_spec_ipv4>(IBV_FLOW_SPEC_IPV4);
  const auto v6 = spec_of<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6);
  const auto tcp = spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_TCP);
  const auto udp = spec_of<ibv_flow_spec_tcp_udp>(IBV_FLOW_SPEC_UDP);
  EXPECT_EQ(error_of(FlowAttributes().add(v4).add(v6)), EINVAL);
  EXPECT_EQ(error_of(FlowAttributes().add(tcp).add(udp)), EINVAL);
  EXPECT_EQ(error_of(FlowAttributes().add(ether_type_spec(0x86dd)).add(v4)), EINVAL);
  EXPECT_EQ(error_of(FlowAttributes().add(ether_type_spec(0x0800)).add(v4).add(udp)), 0);
}

TEST(FlowPattern, MasksOverWhatAFieldHasNotAreInvalid) {
  auto v4 = spec_of<ibv_flow_spec_ipv4_ext>(IBV_FLOW_SPEC_IPV4_EXT);
  v4.mask.flags = 1;
  EXPECT_EQ(error_of(FlowAttributes().add(v4)), EINVAL);
  auto v6 = spec_of<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6);
  v6.mask.flow_label = to_big<std::uint32_t>(0x10'0000);
  EXPECT_EQ(error_of(FlowAttributes().add(v6)), EINVAL);
}

TEST(FlowPattern, SizesAndTypesAreThoseThatThereAre) {
  for (const std::uint32_t type : std::initializer_list<std::uint32_t>{
           IBV_FLOW_SPEC_ETH, IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_IPV4_EXT, IBV_FLOW_SPEC_IPV6,
           IBV_FLOW_SPEC_TCP, IBV_FLOW_SPEC_UDP, 0x99}) {
    // Of the size of none.
    EXPECT_EQ(error_of(FlowAttributes().add(spec_of<ibv_flow_spec_action_tag>(type))), EINVAL);
  }
  for (const std::uint32_t type : std::initializer_list<std::uint32_t>{
           IBV_FLOW_SPEC_ESP, IBV_FLOW_SPEC_VXLAN_TUNNEL, IBV_FLOW_SPEC_GRE, IBV_FLOW_SPEC_MPLS,
           IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_ETH, IBV_FLOW_SPEC_ACTION_TAG,
           IBV_FLOW_SPEC_ACTION_DROP, IBV_FLOW_SPEC_ACTION_HANDLE, IBV_FLOW_SPEC_ACTION_COUNT}) {
    EXPECT_EQ(error_of(FlowAttributes().add(spec_of<ibv_flow_spec_action_tag>(type))), EOPNOTSUPP);
  }
}

}  // namespace
}  // namespace uroce::verbs
