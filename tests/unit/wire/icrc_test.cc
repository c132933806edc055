// SPDX-License-Identifier: BSD-2-Clause
#include "wire/icrc.h"

#include <gtest/gtest.h>

#include "unit/wire/packets.h"
#include "wire/network.h"

namespace uroce::wire {
namespace {

Gid ipv4_gid(std::uint32_t address) { return gid_of_ipv4(address); }

Gid ipv6_gid(std::uint8_t last) {
  Gid gid;
  gid.bytes = {0xfd, 0x91, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, last};
  return gid;
}

Path make_path(bool ipv4) {
  return {.source = ipv4 ? ipv4_gid(0x0a5b'0002) : ipv6_gid(2),
          .destination = ipv4 ? ipv4_gid(0x0a5b'0003) : ipv6_gid(3),
          .flow_label = 0x1'2345,
          .udp_source_port = 0xc123,
          .traffic_class = 0x68,
          .hop_limit = 3};
}

// A whole frame without its ICRC, and what parse_network makes of it.
struct Wired {
  explicit Wired(const Path& path, ConstBytes packet, std::uint16_t identification = 0) {
    std::array<std::byte, kMaxNetworkHeaderBytes> headers;
    const std::size_t bytes = build_network(
        path, {}, static_cast<std::uint16_t>(packet.size() + kIcrcBytes), identification, headers);
    frame = to_vector(std::span(headers).first(bytes));
    append(frame, packet);
    frame.resize(frame.size() + kIcrcBytes);
    EXPECT_EQ(parse_network(frame, view), NetworkDrop::kNone);
  }
  std::uint32_t start() const { return icrc_start(crc32, view.ip_header, view.udp_header); }

  ByteVector frame;
  NetworkView view;
};

TEST(IcrcFlow, StartIsThatOfTheHeadersForEveryLengthAndIdentification) {
  for (const bool ipv4 : {true, false}) {
    const Path path = make_path(ipv4);
    const IcrcFlow flow(path.source, path.destination, path.udp_source_port);
    for (std::size_t payload = 0; payload <= 9000; payload += 52) {
      const ByteVector packet = counting_bytes(12 + payload);
      const auto identification = static_cast<std::uint16_t>(payload * 40'503);
      const Wired wired(path, packet, identification);
      ASSERT_EQ(flow.start(packet.size() + kIcrcBytes, identification), wired.start());
    }
  }
}

TEST(IcrcFlow, FragmentFlagCounts) {
  const Path path = make_path(true);
  const IcrcFlow with(path.source, path.destination, path.udp_source_port, true);
  const IcrcFlow without(path.source, path.destination, path.udp_source_port, false);
  EXPECT_NE(with.start(16), without.start(16));
}

TEST(Icrc, WhatRoutersChangeDoesNotCount) {
  for (const bool ipv4 : {true, false}) {
    Path path = make_path(ipv4);
    ByteVector packet = packet_bytes(sample_view(Opcode::kRcSendOnly), counting_bytes(100));
    const Wired before(path, packet);
    const std::uint32_t icrc = icrc_of(crc32, before.start(), packet);
    path.traffic_class = 0;
    path.hop_limit = 64;
    path.flow_label = 0;
    packet[4] = std::byte{0xc0};  // FECN and BECN
    const Wired after(path, packet);
    EXPECT_EQ(icrc_of(crc32, after.start(), packet), icrc);
  }
}

TEST(Icrc, EveryOtherBitCounts) {
  const Path path = make_path(true);
  ByteVector packet = packet_bytes(sample_view(Opcode::kRcSendOnly), counting_bytes(100));
  const std::uint32_t start = Wired(path, packet).start();
  const std::uint32_t icrc = icrc_of(crc32, start, packet);
  for (std::size_t at = 0; at < packet.size(); ++at) {
    for (unsigned bit = 1; bit < 256 && at != 4; bit <<= 1) {
      packet[at] ^= static_cast<std::byte>(bit);
      ASSERT_NE(icrc_of(crc32, start, packet), icrc);
      packet[at] ^= static_cast<std::byte>(bit);
    }
  }
}

TEST(Icrc, PiecesGiveWhatTheWholeGives) {
  const IcrcFlow flow(ipv4_gid(1), ipv4_gid(2), 0xc000);
  for (std::size_t payload_bytes = 0; payload_bytes < 200; ++payload_bytes) {
    const ByteVector payload = counting_bytes(payload_bytes);
    const PacketView view = sample_view(Opcode::kRcWriteOnly);
    const ByteVector whole = packet_bytes(view, payload);
    const std::uint32_t start = flow.start(whole.size() + kIcrcBytes);
    const std::uint8_t pad = pad_bytes_for(static_cast<std::uint32_t>(payload_bytes));

    std::uint32_t state = icrc_headers(crc32, start, ConstBytes(whole).first(28));
    state = crc32(state, payload.data(), payload.size() / 3);
    state = crc32(state, payload.data() + payload.size() / 3, payload.size() - payload.size() / 3);
    std::array<std::byte, kMaxTrailerBytes> trailer;
    ASSERT_EQ(icrc_trailer(crc32, state, pad, trailer), pad + kIcrcBytes);
    for (std::size_t i = 0; i < pad; ++i) EXPECT_EQ(trailer[i], std::byte{0});
    EXPECT_EQ(load_icrc(std::span(trailer).first(pad + kIcrcBytes)), icrc_of(crc32, start, whole));
  }
}

TEST(Icrc, IsStoredLeastSignificantByteFirst) {
  EXPECT_EQ(load_icrc(bytes({9, 9, 0xd1, 0x64, 0x96, 0x15})), 0x1596'64d1u);
}

}  // namespace
}  // namespace uroce::wire
