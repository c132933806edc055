// SPDX-License-Identifier: BSD-2-Clause
#include "wire/describe.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/wire/packets.h"

namespace uroce::wire {
namespace {

std::string line_of(const PacketView& view) {
  std::array<char, kDescriptionChars> out;
  return std::string(describe(view, out));
}

TEST(Describe, WriteFirst) {
  PacketView view = {
      .opcode = &opcode_info(Opcode::kRcWriteFirst),
      .bth = {.destination = {0x12}, .psn = Psn(0x0a'0003)},
      .reth = {.virtual_address = 0x2000'0000'0000, .rkey = {0x3c4}, .dma_bytes = 1027}};
  const ByteVector payload = counting_bytes(1024);
  view.payload = payload;
  EXPECT_EQ(line_of(view),
            "RC WRITE_FIRST qpn=0x000012 psn=0x0a0003 va=0x200000000000 rkey=0x000003c4 dma=1027 "
            "payload=1024");
}

TEST(Describe, Answers) {
  PacketView view = {.opcode = &opcode_info(Opcode::kRcAcknowledge), .aeth = {.msn = {3}}};
  view.aeth.syndrome = Syndrome::ack();
  EXPECT_EQ(line_of(view), "RC ACKNOWLEDGE qpn=0x000000 psn=0x000000 ack credits=31 msn=3");
  view.aeth.syndrome = Syndrome::rnr_nak(20);
  EXPECT_EQ(line_of(view), "RC ACKNOWLEDGE qpn=0x000000 psn=0x000000 rnr_nak timer=20 msn=3");
  view.aeth.syndrome = Syndrome::nak(NakCode::kPsnSequence);
  EXPECT_EQ(line_of(view), "RC ACKNOWLEDGE qpn=0x000000 psn=0x000000 nak=psn_sequence msn=3");
  view.aeth.syndrome = Syndrome{0x7f};
  EXPECT_EQ(line_of(view), "RC ACKNOWLEDGE qpn=0x000000 psn=0x000000 nak=reserved msn=3");
  view.aeth.syndrome = Syndrome{0x40};
  EXPECT_EQ(line_of(view), "RC ACKNOWLEDGE qpn=0x000000 psn=0x000000 reserved syndrome=0x40 msn=3");
}

TEST(Describe, FlagsAndRuns) {
  PacketView view = {.opcode = &opcode_info(Opcode::kUcSendOnlyImmediate),
                     .packet_count = 4,
                     .bth = {.solicited = true,
                             .mig_req = false,
                             .pad_bytes = 2,
                             .pkey = {0x8001},
                             .fecn = true,
                             .becn = true,
                             .ack_request = true},
                     .immediate = {0xcafe}};
  EXPECT_EQ(
      line_of(view),
      "UC SEND_ONLY_WITH_IMMEDIATE qpn=0x000000 psn=0x000000 pkey=0x8001 solicited ack_request "
      "mig_req=0 fecn becn immediate=0x0000cafe payload=0 pad=2 packets=4");
}

TEST(Describe, EveryLineFits) {
  for (const OpcodeInfo& info : kOpcodes) {
    if (!info.is_valid()) continue;
    PacketView view = sample_view(info.opcode);
    view.bth.fecn = true;
    view.bth.mig_req = false;
    view.packet_count = 65'535;
    const std::string line = line_of(view);
    EXPECT_LT(line.size(), kDescriptionChars);
    EXPECT_EQ(line.find('?'), std::string::npos);
  }
}

TEST(Describe, CutsOffWhatDoesNotFit) {
  const PacketView view = sample_view(Opcode::kRcCompareSwap);
  const std::string whole = line_of(view);
  for (std::size_t chars = 0; chars < whole.size(); ++chars) {
    std::vector<char> out(chars);
    EXPECT_EQ(describe(view, out), whole.substr(0, chars));
  }
}

TEST(Describe, SaysWhyAPacketIsMalformed) {
  std::array<char, kDescriptionChars> out;
  const ByteVector packet = counting_bytes(7);
  RxPacket received;
  received.bytes = packet;
  EXPECT_EQ(describe(received, out), "malformed (too short), bytes=7");
  const ByteVector good = packet_bytes(sample_view(Opcode::kRcFetchAdd));
  received.bytes = good;
  EXPECT_EQ(describe(received, out).substr(0, 12), "RC FETCH_ADD");
}

}  // namespace
}  // namespace uroce::wire
