// SPDX-License-Identifier: BSD-2-Clause
#include "wire/network.h"

#include <gtest/gtest.h>

#include <memory>

#include "unit/wire/packets.h"

namespace uroce::wire {
namespace {

constexpr LinkAddresses kLink = {.source = {{2, 0, 0, 0, 0, 1}},
                                 .destination = {{2, 0, 0, 0, 0, 2}}};

Path make_path(bool ipv4) {
  Path path = {.source = gid_of_ipv4(0x0a5b'0002),
               .destination = gid_of_ipv4(0x0a5b'0003),
               .flow_label = 0xa'bcde,
               .udp_source_port = 0xc123,
               .traffic_class = 0x68,
               .hop_limit = 9};
  if (!ipv4) path.source.bytes[0] = path.destination.bytes[0] = 0xfd;
  return path;
}

ByteVector make_frame(const Path& path, std::size_t payload_bytes) {
  std::array<std::byte, kMaxNetworkHeaderBytes> headers;
  const std::size_t bytes =
      build_network(path, kLink, static_cast<std::uint16_t>(payload_bytes), 0x1234, headers);
  ByteVector frame = to_vector(std::span(headers).first(bytes));
  append(frame, counting_bytes(payload_bytes));
  return frame;
}

NetworkDrop drop_of(const ByteVector& frame) {
  NetworkView view;
  return parse_network(frame, view);
}

TEST(Network, Ipv4HeadersLieOnTheWireAsDrawn) {
  // The checksum was computed by hand: the one's complement of the sum of the other nine words.
  EXPECT_EQ(
      make_frame(make_path(true), 0),
      bytes({2,    0,    0, 0,  0,    2,    2,    0, 0,    0,    0,    1,    0x08, 0x00,  //
             0x45, 0x68, 0, 28, 0x12, 0x34, 0x40, 0, 9,    17,   0x4a, 0x7b,              //
             10,   91,   0, 2,  10,   91,   0,    3, 0xc1, 0x23, 0x12, 0xb7, 0,    8,    0, 0}));
}

TEST(Network, EveryFieldComesBack) {
  for (const bool ipv4 : {true, false}) {
    const Path path = make_path(ipv4);
    const ByteVector frame = make_frame(path, 40);
    NetworkView view;
    ASSERT_EQ(parse_network(frame, view), NetworkDrop::kNone);
    EXPECT_EQ(view.link.source, kLink.source);
    EXPECT_EQ(view.link.destination, kLink.destination);
    EXPECT_EQ(view.source, path.source);
    EXPECT_EQ(view.destination, path.destination);
    EXPECT_EQ(view.traffic_class, path.traffic_class);
    EXPECT_EQ(view.hop_limit, path.hop_limit);
    EXPECT_EQ(view.flow_label, ipv4 ? 0 : path.flow_label);
    EXPECT_EQ(view.udp_source_port, path.udp_source_port);
    EXPECT_EQ(to_vector(view.udp_payload), counting_bytes(40));
    EXPECT_EQ(view.ip_header.size(), ipv4 ? kIpv4HeaderBytes : kIpv6HeaderBytes);
  }
}

TEST(Network, EthernetPaddingIsNotPayload) {
  ByteVector frame = make_frame(make_path(true), 4);
  frame.resize(60);
  NetworkView view;
  ASSERT_EQ(parse_network(frame, view), NetworkDrop::kNone);
  EXPECT_EQ(view.udp_payload.size(), 4u);
}

TEST(Network, VlanTagIsSkipped) {
  ByteVector frame = make_frame(make_path(false), 16);
  const ByteVector tag = bytes({0x81, 0x00, 0x20, 0x05});
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  NetworkView view;
  ASSERT_EQ(parse_network(frame, view), NetworkDrop::kNone);
  EXPECT_EQ(view.udp_payload.size(), 16u);
}

TEST(Network, EveryTruncationIsDropped) {
  for (const bool ipv4 : {true, false}) {
    for (const bool tagged : {true, false}) {
      ByteVector frame = make_frame(make_path(ipv4), 16);
      const ByteVector tag = bytes({0x81, 0x00, 0x20, 0x05});
      if (tagged) frame.insert(frame.begin() + 12, tag.begin(), tag.end());
      for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
        const auto exact = std::make_unique<std::byte[]>(bytes);
        std::copy_n(frame.begin(), bytes, exact.get());
        NetworkView view;
        ASSERT_EQ(parse_network({exact.get(), bytes}, view), NetworkDrop::kTruncated) << bytes;
      }
    }
  }
}

TEST(Network, OtherProtocolsAreLeftAlone) {
  ByteVector frame = make_frame(make_path(true), 16);
  frame[12] = std::byte{0x08};
  frame[13] = std::byte{0x06};
  EXPECT_EQ(drop_of(frame), NetworkDrop::kNotIp);
  frame = make_frame(make_path(true), 16);
  frame[37] ^= std::byte{1};  // UDP port 4790
  EXPECT_EQ(drop_of(frame), NetworkDrop::kNotRoce);
  frame = make_frame(make_path(false), 16);
  frame[20] = std::byte{44};  // IPv6 fragment header
  EXPECT_EQ(drop_of(frame), NetworkDrop::kNotRoce);
}

// Changes an IPv4 header's byte and corrects the checksum, so that only the byte is wrong.
ByteVector with_ip_byte(std::size_t at, unsigned value) {
  ByteVector frame = make_frame(make_path(true), 16);
  frame[14 + at] = static_cast<std::byte>(value);
  frame[24] = frame[25] = {};
  std::uint32_t sum = 0;
  for (std::size_t i = 14; i < 34; i += 2) {
    sum += static_cast<std::uint32_t>(frame[i]) << 8 | static_cast<std::uint32_t>(frame[i + 1]);
  }
  sum = (sum & 0xffff) + (sum >> 16);
  sum = ~(sum + (sum >> 16));
  frame[24] = static_cast<std::byte>(sum >> 8);
  frame[25] = static_cast<std::byte>(sum);
  return frame;
}

TEST(Network, BadIpv4HeadersAreDropped) {
  EXPECT_EQ(drop_of(with_ip_byte(0, 0x65)), NetworkDrop::kBadIpHeader);  // version
  EXPECT_EQ(drop_of(with_ip_byte(0, 0x44)), NetworkDrop::kBadIpHeader);  // header of 16 bytes
  EXPECT_EQ(drop_of(with_ip_byte(0, 0x4f)), NetworkDrop::kBadIpHeader);  // header over all
  EXPECT_EQ(drop_of(with_ip_byte(6, 0x60)), NetworkDrop::kFragment);     // more fragments
  EXPECT_EQ(drop_of(with_ip_byte(7, 0x01)), NetworkDrop::kFragment);     // offset
  EXPECT_EQ(drop_of(with_ip_byte(9, 6)), NetworkDrop::kNotRoce);         // TCP
  EXPECT_EQ(drop_of(with_ip_byte(6, 0x00)), NetworkDrop::kNone);         // DF clear
  ByteVector frame = make_frame(make_path(true), 16);
  frame[15] ^= std::byte{1};
  EXPECT_EQ(drop_of(frame), NetworkDrop::kBadIpHeader);  // checksum
}

TEST(Network, Ipv4OptionsAreSkipped) {
  // A header of 24 bytes takes the first word of what was UDP for its options.
  ByteVector frame = make_frame(make_path(true), 16);
  const ByteVector options = bytes({1, 1, 1, 0});
  frame.insert(frame.begin() + 34, options.begin(), options.end());
  frame[14] = std::byte{0x46};
  frame[17] = static_cast<std::byte>(std::to_integer<unsigned>(frame[17]) + 4);
  // One word more in the header, four bytes more in all, and the options' two words.
  std::uint32_t sum = ~(std::to_integer<std::uint32_t>(frame[24]) << 8 |
                        std::to_integer<std::uint32_t>(frame[25])) &
                      0xffff;
  sum += 0x100 + 4 + 0x101 + 0x100;
  sum = ~((sum & 0xffff) + (sum >> 16));
  frame[24] = static_cast<std::byte>(sum >> 8);
  frame[25] = static_cast<std::byte>(sum);
  NetworkView view;
  ASSERT_EQ(parse_network(frame, view), NetworkDrop::kNone);
  EXPECT_EQ(view.ip_header.size(), 24u);
  EXPECT_EQ(view.udp_payload.size(), 16u);
}

TEST(Network, BadUdpLengthsAreDropped) {
  for (const bool ipv4 : {true, false}) {
    const std::size_t length_at = (ipv4 ? 34u : 54u) + 4;
    for (const unsigned bytes : {0u, 7u, 25u, 0xffffu}) {
      ByteVector frame = make_frame(make_path(ipv4), 16);
      frame[length_at] = static_cast<std::byte>(bytes >> 8);
      frame[length_at + 1] = static_cast<std::byte>(bytes);
      EXPECT_EQ(drop_of(frame), NetworkDrop::kBadUdpLength) << bytes;
    }
  }
}

TEST(Network, EveryReasonHasAName) {
  for (std::size_t drop = 0; drop < kNetworkDropCount; ++drop) {
    EXPECT_NE(name(static_cast<NetworkDrop>(drop)), "?");
  }
}

}  // namespace
}  // namespace uroce::wire
