// SPDX-License-Identifier: BSD-2-Clause
#include "steering/frame_key.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/ethernet.h"

namespace uroce::steering {
namespace {

using test::FrameBuilder;
using test::kGroupMac;
using test::kMacA;
using test::kMacB;

constexpr test::Ipv4Address kFrom{10, 0, 0, 1};
constexpr test::Ipv4Address kTo{10, 0, 0, 2};
constexpr test::Ipv6Address kFrom6{0xfd, 1};
constexpr test::Ipv6Address kTo6{0xfd, 2};

FrameBuilder frame() { return {kMacB, kMacA}; }

TEST(FrameKey, HasTheFieldsOfIpv4AndUdp) {
  const FrameKey key = classify(frame().ipv4(kFrom, kTo, test::kUdp).ports(1234, 5678).bytes());
  EXPECT_EQ(key.layers, layer::kIpv4 | layer::kUdp);
  EXPECT_EQ(key.destination_mac, kMacB);
  EXPECT_EQ(key.source_mac, kMacA);
  EXPECT_EQ(key.ether_type.get(), 0x0800);
  EXPECT_TRUE(std::ranges::equal(kFrom, std::span(key.source).first(4)));
  EXPECT_TRUE(std::ranges::equal(kTo, std::span(key.destination).first(4)));
  EXPECT_EQ(key.protocol, test::kUdp);
  EXPECT_EQ(key.traffic_class, 0x1c);
  EXPECT_EQ(key.hop_limit, 63);
  EXPECT_EQ(key.ipv4_flags, kDontFragment);
  EXPECT_EQ(key.source_port.get(), 1234);
  EXPECT_EQ(key.destination_port.get(), 5678);
}

TEST(FrameKey, HasTheFieldsOfIpv6AndTcp) {
  const FrameKey key = classify(frame().ipv6(kFrom6, kTo6, test::kTcp).ports(1, 2).bytes());
  EXPECT_EQ(key.layers, layer::kIpv6 | layer::kTcp);
  EXPECT_EQ(key.ether_type.get(), 0x86dd);
  EXPECT_EQ(key.source, kFrom6);
  EXPECT_EQ(key.destination, kTo6);
  EXPECT_EQ(key.protocol, test::kTcp);
  EXPECT_EQ(key.traffic_class, 0x1c);
  EXPECT_EQ(key.flow_label.get(), 0x1'2345U);
  EXPECT_EQ(key.hop_limit, 62);
  EXPECT_EQ(key.source_port.get(), 1);
  EXPECT_EQ(key.destination_port.get(), 2);
}

TEST(FrameKey, LooksBehindTagsAndKeepsTheFirst) {
  const FrameKey one = classify(frame().vlan(0xac0c).ipv4(kFrom, kTo, test::kUdp).bytes());
  EXPECT_EQ(one.layers, layer::kVlan | layer::kIpv4);
  EXPECT_EQ(one.vlan_tag.get(), 0xac0c);
  EXPECT_EQ(one.ether_type.get(), 0x0800);
  const FrameKey two = classify(
      frame().vlan(0x2001, 0x88a8).vlan(0x3002).ipv4(kFrom, kTo, test::kTcp).ports(7, 8).bytes());
  EXPECT_EQ(two.vlan_tag.get(), 0x2001);
  EXPECT_EQ(two.layers, layer::kVlan | layer::kIpv4 | layer::kTcp);
}

TEST(FrameKey, OnlyAFirstFragmentHasPorts) {
  const auto of = [](std::uint16_t fragment) {
    return classify(frame().ipv4(kFrom, kTo, test::kUdp, fragment).ports(1, 2).bytes());
  };
  EXPECT_EQ(of(0x2000).layers, layer::kIpv4 | layer::kUdp);
  EXPECT_EQ(of(0x2000).ipv4_flags, kMoreFragments);
  EXPECT_EQ(of(0x2001).layers, layer::kIpv4);
  EXPECT_EQ(of(0x0001).destination_port.get(), 0);
}

// Strangers send what they like; no length may be read over.
TEST(FrameKey, OfEveryLengthHasTheLayersThatAreWhole) {
  const auto v4 = frame().vlan(1).ipv4(kFrom, kTo, test::kUdp).ports(1, 2).bytes();
  const auto v6 = frame().ipv6(kFrom6, kTo6, test::kTcp).ports(1, 2).bytes();
  for (const auto& whole : {v4, v6}) {
    std::uint8_t layers = 0;
    for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
      const std::vector<std::byte> cut(whole.begin(),
                                       whole.begin() + static_cast<std::ptrdiff_t>(bytes));
      const FrameKey key = classify(cut);
      EXPECT_EQ(key.layers & layers, layers) << bytes;  // none is lost again
      layers = key.layers;
    }
    EXPECT_EQ(layers, classify(whole).layers);
  }
}

TEST(FrameKey, WhatContradictsItselfIsNoIp) {
  auto bytes = frame().ipv4(kFrom, kTo, test::kUdp).ports(1, 2).bytes();
  bytes[14] = std::byte{0x44};  // a header of 16 bytes
  EXPECT_EQ(classify(bytes).layers, 0);
  bytes[14] = std::byte{0x4f};  // of 60, which are not there
  EXPECT_EQ(classify(bytes).layers, layer::kIpv4);
  bytes[14] = std::byte{0x65};
  EXPECT_EQ(classify(bytes).layers, 0);
}

TEST(FrameKey, KnowsGroups) {
  EXPECT_TRUE(classify(FrameBuilder(kGroupMac, kMacA).type(1).bytes()).is_multicast());
  EXPECT_FALSE(classify(FrameBuilder(kMacB, kMacA).type(1).bytes()).is_multicast());
}

// Each byte of a key counts where its mask says so, bit by bit.
TEST(Pattern, ComparesJustTheMaskedBits) {
  using KeyBytes = std::array<std::uint8_t, sizeof(FrameKey)>;
  for (std::size_t i = 0; i < sizeof(FrameKey); ++i) {
    KeyBytes mask{};
    KeyBytes key{};
    mask[i] = 0x0f;
    key[i] = 0xf0;
    const Pattern pattern{.value = {}, .mask = std::bit_cast<FrameKey>(mask)};
    EXPECT_TRUE(pattern.matches(std::bit_cast<FrameKey>(key))) << i;
    key[i] = 0x08;
    EXPECT_FALSE(pattern.matches(std::bit_cast<FrameKey>(key))) << i;
  }
}

}  // namespace
}  // namespace uroce::steering
