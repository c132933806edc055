// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/echo.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "datapath/neighbour/address.h"
#include "datapath/neighbour/internet_checksum.h"

namespace uroce::datapath {
namespace {

constexpr Gid kAsker = ipv4_mapped({10, 0, 0, 1});
constexpr Gid kAsked = ipv4_mapped({10, 0, 0, 2});
constexpr std::size_t kEchoBytes = 8 + 20;
constexpr std::size_t kIpv4EchoAt = 14 + 20;

// An echo request as `ping` sends it.
std::vector<std::byte> ipv4_request() {
  std::vector<std::byte> frame(kIpv4EchoAt + kEchoBytes, std::byte{0x42});
  write_wire(
      frame, 0,
      make_ethernet(MacAddress{{2, 0, 0, 0, 0, 2}}, MacAddress{{2, 0, 0, 0, 0, 1}}, kTypeIpv4));
  auto ip = wire::to_wire(wire::Ipv4{.source = wire::ipv4_of(kAsker),
                                     .destination = wire::ipv4_of(kAsked),
                                     .total_bytes = 20 + kEchoBytes});
  ip.protocol = kProtocolIcmp;
  write_wire(frame, 14, ip);
  write_wire(frame, kIpv4EchoAt, std::array<std::uint8_t, 4>{8, 0, 0, 0});
  const auto echo = std::span(frame).subspan(kIpv4EchoAt);
  write_wire(frame, kIpv4EchoAt + 2, Be16(checksum_finish(checksum_add(0, echo))));
  return frame;
}

TEST(Echo, ARequestIsAnsweredWithItsOwnContent) {
  const auto request = ipv4_request();
  std::array<std::byte, 256> reply;
  Gid asked;
  ASSERT_EQ(build_echo_reply(request, reply, asked), request.size());
  EXPECT_EQ(asked, kAsked);
  EXPECT_EQ(read_wire<EthernetWire>(reply).destination,
            (std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, 1}));
  const auto ip = read_wire<wire::Ipv4Wire>(reply, 14);
  EXPECT_EQ(ip.destination.get(), wire::ipv4_of(kAsker));
  const auto whole = std::span(reply).first(request.size());
  EXPECT_EQ(checksum_finish(checksum_add(0, whole.subspan(14, 20))), 0);
  EXPECT_EQ(checksum_finish(checksum_add(0, whole.subspan(kIpv4EchoAt))), 0);
  EXPECT_EQ(reply[kIpv4EchoAt], std::byte{0});
  EXPECT_TRUE(std::equal(request.begin() + kIpv4EchoAt + 4, request.end(),
                         whole.begin() + kIpv4EchoAt + 4));
}

TEST(Echo, ShortDamagedOrForeignFramesAreNotAnswered) {
  const auto request = ipv4_request();
  std::array<std::byte, 256> reply;
  Gid asked;
  for (std::size_t length = 0; length < request.size(); ++length) {
    EXPECT_EQ(build_echo_reply(std::span(request).first(length), reply, asked), 0u);
  }
  auto damaged = request;
  damaged.back() ^= std::byte{1};
  EXPECT_EQ(build_echo_reply(damaged, reply, asked), 0u);
  auto fragment = request;
  fragment[14 + 7] = std::byte{1};
  EXPECT_EQ(build_echo_reply(fragment, reply, asked), 0u);
  EXPECT_EQ(build_echo_reply(request, std::span(reply).first(30), asked), 0u);
}

}  // namespace
}  // namespace uroce::datapath
