// SPDX-License-Identifier: BSD-2-Clause
// Two resolvers joined by nothing but their frames: ARP and neighbour discovery, both ways.
#include "datapath/neighbour/own_resolver.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "datapath/neighbour/arp.h"
#include "datapath/neighbour/internet_checksum.h"
#include "datapath/neighbour/nd.h"

namespace uroce::datapath {
namespace {

using Frame = std::array<std::byte, 256>;

constexpr MacAddress kMacA{{2, 0, 0, 0, 0, 0xa}};
constexpr MacAddress kMacB{{2, 0, 0, 0, 0, 0xb}};
constexpr Gid kIpv4A = ipv4_mapped({10, 0, 0, 1});
constexpr Gid kIpv4B = ipv4_mapped({10, 0, 0, 2});
constexpr Gid kIpv6A{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
constexpr Gid kIpv6B{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};

class OwnResolvers : public testing::Test {
 protected:
  // What a asks goes to b, what b answers goes to a.
  void exchange(Instant now) {
    Frame question;
    Frame answer;
    Frame ignored;
    while (const std::size_t asked = a_.poll_frame(now, question)) {
      const std::size_t answered = b_.on_frame(now, std::span(question).first(asked), answer);
      if (answered == 0) continue;
      EXPECT_EQ(a_.on_frame(now, std::span(answer).first(answered), ignored), 0u);
    }
  }

  OwnResolver a_{kMacA, std::array{InterfaceAddress{kIpv4A, 24}, InterfaceAddress{kIpv6A, 64}}};
  OwnResolver b_{kMacB, std::array{InterfaceAddress{kIpv4B, 24}, InterfaceAddress{kIpv6B, 64}}};
};

TEST_F(OwnResolvers, FindEachOtherByEveryKindOfAddress) {
  for (const Gid& target : {kIpv4B, kIpv6B, link_local_of(kMacB)}) {
    Path path{.source = {}, .destination = target};
    ASSERT_EQ(a_.open_path(path), 0);
    MacAddress mac;
    EXPECT_FALSE(a_.find(path, mac));
    exchange(Instant{1});
    ASSERT_TRUE(a_.find(path, mac));
    EXPECT_EQ(mac, kMacB);
    a_.close_path(path);
  }
}

TEST_F(OwnResolvers, AStaleNeighbourIsConfirmedByAskingIt) {
  for (const Gid& target : {kIpv4B, kIpv6B}) {
    Path path{.source = {}, .destination = target};
    ASSERT_EQ(a_.open_path(path), 0);
  }
  exchange(Instant{1});
  Frame question;
  const Instant later = Instant{2} + NeighbourTable::Timing{}.reachable_for;
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(a_.poll_frame(later, question), 0u);
    EXPECT_EQ(read_wire<EthernetWire>(question).destination, kMacB.bytes);
  }
}

// An advertisement as Linux answers a neighbour that asks it at its address: without the option.
std::size_t drop_mac_option(Frame& answer) {
  constexpr std::size_t kIpv6At = 14, kNdAt = kIpv6At + 40, kNdBytes = 24;
  auto ip = read_wire<wire::Ipv6Wire>(answer, kIpv6At);
  ip.payload_bytes.set(kNdBytes);
  write_wire(answer, kIpv6At, ip);
  write_wire(answer, kNdAt + 2, Be16(0));
  const ConstBytes message = std::span(answer).subspan(kNdAt, kNdBytes);
  write_wire(answer, kNdAt + 2, Be16(icmpv6_checksum({ip.source}, {ip.destination}, message)));
  return kNdAt + kNdBytes;
}

TEST_F(OwnResolvers, AnAnswerConfirmsWithoutRepeatingTheAddress) {
  Path path{.source = {}, .destination = kIpv6B};
  ASSERT_EQ(a_.open_path(path), 0);
  Frame question;
  Frame answer;
  Frame ignored;
  const auto ask = [&](Instant now) {
    const std::size_t asked = a_.poll_frame(now, question);
    if (asked == 0) return false;
    EXPECT_EQ(b_.on_frame(now, std::span(question).first(asked), answer), kNdFrameBytes);
    return true;
  };
  MacAddress mac;
  // Who is not known yet is not found by it ...
  ASSERT_TRUE(ask(Instant{1}));
  Frame short_answer = answer;
  const std::size_t bytes = drop_mac_option(short_answer);
  EXPECT_EQ(a_.on_frame(Instant{1}, std::span(short_answer).first(bytes), ignored), 0u);
  EXPECT_FALSE(a_.find(path, mac));
  EXPECT_EQ(a_.on_frame(Instant{1}, std::span(answer).first(kNdFrameBytes), ignored), 0u);
  ASSERT_TRUE(a_.find(path, mac));
  // ... and who is, is asked once.
  const Instant later = Instant{2} + NeighbourTable::Timing{}.reachable_for;
  ASSERT_TRUE(ask(later));
  EXPECT_EQ(drop_mac_option(answer), bytes);
  EXPECT_EQ(a_.on_frame(later, std::span(answer).first(bytes), ignored), 0u);
  EXPECT_FALSE(ask(later + NeighbourTable::Timing{}.last_pause));
  ASSERT_TRUE(a_.find(path, mac));
  EXPECT_EQ(mac, kMacB);
}

TEST_F(OwnResolvers, OtherSubnetsAreOutOfReachAndGroupsNeedNoQuestion) {
  Path far{.source = {}, .destination = ipv4_mapped({192, 0, 2, 1})};
  EXPECT_EQ(a_.open_path(far), EHOSTUNREACH);
  Path group{.source = {}, .destination = ipv4_mapped({224, 1, 2, 3})};
  ASSERT_EQ(a_.open_path(group), 0);
  MacAddress mac;
  ASSERT_TRUE(a_.find(group, mac));
  EXPECT_EQ(mac, (MacAddress{{0x01, 0, 0x5e, 1, 2, 3}}));
  Frame frame;
  EXPECT_EQ(a_.poll_frame(Instant{1}, frame), 0u);
}

TEST_F(OwnResolvers, QuestionsForOthersStayUnanswered) {
  Frame question;
  Frame answer;
  std::size_t bytes =
      build_arp_request(question, kMacA, kIpv4A, ipv4_mapped({10, 0, 0, 77}), kBroadcast);
  EXPECT_EQ(b_.on_frame(Instant{}, std::span(question).first(bytes), answer), 0u);
  bytes = build_solicitation(question, kMacA, kIpv6A, {{0xfd, 9}}, nullptr);
  EXPECT_EQ(b_.on_frame(Instant{}, std::span(question).first(bytes), answer), 0u);
}

// RFC 5227: a probe claims no address; RFC 4861 7.2.4: it is answered to all nodes.
TEST_F(OwnResolvers, AddressProbesAreAnsweredSoThatTheyFindTheConflict) {
  Frame question;
  Frame answer;
  const std::size_t bytes = build_solicitation(question, kMacA, Gid{}, kIpv6B, nullptr);
  ASSERT_EQ(b_.on_frame(Instant{}, std::span(question).first(bytes), answer), kNdFrameBytes);
  EXPECT_EQ(read_wire<EthernetWire>(answer).destination,
            (std::array<std::uint8_t, 6>{0x33, 0x33, 0, 0, 0, 1}));
  const auto told = parse_nd(std::span(answer).first(kNdFrameBytes));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->told_mac, kMacB);
}

// Every length and every single bit flipped: no crash, and nothing learnt that was not said.
TEST_F(OwnResolvers, DamagedFramesAreHarmless) {
  Frame whole;
  Frame answer;
  for (const bool ipv6 : {false, true}) {
    const std::size_t bytes = ipv6 ? build_solicitation(whole, kMacA, kIpv6A, kIpv6B, nullptr)
                                   : build_arp_request(whole, kMacA, kIpv4A, kIpv4B, kBroadcast);
    for (std::size_t length = 0; length < bytes; ++length) {
      EXPECT_EQ(b_.on_frame(Instant{}, std::span(whole).first(length), answer), 0u) << length;
    }
    for (std::size_t bit = 14 * 8; bit < bytes * 8; ++bit) {
      Frame damaged = whole;
      damaged[bit / 8] ^= std::byte{1} << (bit % 8);
      static_cast<void>(b_.on_frame(Instant{}, std::span(damaged).first(bytes), answer));
    }
  }
}

TEST_F(OwnResolvers, ASolicitationFromBeyondARouterIsIgnored) {
  Frame question;
  Frame answer;
  const std::size_t bytes = build_solicitation(question, kMacA, kIpv6A, kIpv6B, nullptr);
  constexpr std::size_t kHopLimitAt = 14 + 7;
  question[kHopLimitAt] = std::byte{254};
  EXPECT_EQ(b_.on_frame(Instant{}, std::span(question).first(bytes), answer), 0u);
}

TEST(SameSubnet, ComparesJustThePrefix) {
  const InterfaceAddress own{ipv4_mapped({10, 1, 2, 3}), 23};
  EXPECT_TRUE(same_subnet(own, ipv4_mapped({10, 1, 3, 200})));
  EXPECT_FALSE(same_subnet(own, ipv4_mapped({10, 1, 4, 3})));
  EXPECT_FALSE(same_subnet(own, kIpv6A));
  EXPECT_TRUE(same_subnet({kIpv6A, 0}, kIpv6B));
  EXPECT_FALSE(same_subnet({kIpv6A, 128}, kIpv6B));
  EXPECT_TRUE(same_subnet({kIpv6A, 126}, kIpv6B));
}

}  // namespace
}  // namespace uroce::datapath
