// SPDX-License-Identifier: BSD-2-Clause
#include "wire/arrived_run.h"

#include <gtest/gtest.h>

#include <array>

#include "support/arrival.h"
#include "wire/parse.h"

namespace uroce::wire {
namespace {

using test::Arrival;
using test::write_run;

RxPacket packet_of(const Arrival& arrival) {
  RxPacket packet;
  packet.bytes = arrival.headers;
  packet.detached_payload = arrival.payload;
  packet.payload_is_detached = true;
  packet.packet_count = arrival.packet_count;
  return packet;
}

class EveryMtu : public testing::TestWithParam<std::uint16_t> {};

TEST_P(EveryMtu, BecomesThePacketsThatAWireWouldHaveCarried) {
  const std::uint16_t mtu = GetParam();
  for (const std::uint16_t count : std::array<std::uint16_t, 3>{2, 3, 17}) {
    for (const std::size_t last : {std::size_t{1}, std::size_t{mtu} / 2, std::size_t{mtu}}) {
      const std::size_t bytes = std::size_t{mtu} * (count - 1u) + last;
      const Arrival arrival = write_run(0xff'fffe, bytes, count);
      ArrivedRun run;
      ASSERT_TRUE(run.open(packet_of(arrival)));
      ASSERT_EQ(run.packet_count(), count);
      std::size_t seen = 0;
      for (unsigned i = 0; i < count; ++i) {
        std::array<std::byte, kMaxHeaderBytes> headers;
        const RxPacket packet = run.packet(i, headers);
        PacketView view;
        ASSERT_EQ(parse(packet, view), DropReason::kNone);
        EXPECT_EQ(view.bth.psn, Psn(0xff'fffe + i));
        EXPECT_EQ(view.bth.ack_request, i + 1u == count);
        EXPECT_EQ(view.opcode->begins(), i == 0);
        EXPECT_EQ(view.opcode->ends(), i + 1u == count);
        EXPECT_EQ(view.payload.data(), arrival.payload.data() + seen);
        seen += view.payload.size();
      }
      EXPECT_EQ(seen, bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryMtu, testing::Values(256, 512, 1024, 2048, 4096));

TEST(ArrivedRun, RefusesWhatNoSenderMakes) {
  ArrivedRun run;
  EXPECT_FALSE(run.open(RxPacket{}));
  EXPECT_FALSE(run.open(packet_of(write_run(1, 10'000, 2)))) << "an MTU above 4096";
  EXPECT_FALSE(run.open(packet_of(write_run(1, 300, 3)))) << "an MTU below 256";
  EXPECT_FALSE(run.open(packet_of(write_run(1, 2, 3)))) << "more packets than bytes";
  Arrival datagram = write_run(1, 1024, 2);
  datagram.headers.resize(20);
  datagram.headers[0] = std::byte{0x64};  // UD SEND ONLY
  EXPECT_FALSE(run.open(packet_of(datagram))) << "UD has messages of one packet only";
  Arrival longer = write_run(1, 1024, 2);
  longer.headers.resize(kMaxHeaderBytes + 4);
  EXPECT_FALSE(run.open(packet_of(longer)));
}

}  // namespace
}  // namespace uroce::wire
