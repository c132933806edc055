// SPDX-License-Identifier: BSD-2-Clause
#include "wire/opcode.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace uroce::wire {
namespace {

// IBTA table 38 and annex 19, typed in a second time and in another form: extension headers by
// opcode. A letter a header: D DETH, Q XRCETH, F FETH, R RETH, X AtomicETH, A AETH, Y AtomicAckETH,
// I immediate, V IETH; P payload.
const std::map<unsigned, std::string> kExpected = {
    {0x00, "P"},   {0x01, "P"},  {0x02, "P"},   {0x03, "IP"}, {0x04, "P"},  {0x05, "IP"},
    {0x06, "RP"},  {0x07, "P"},  {0x08, "P"},   {0x09, "IP"}, {0x0a, "RP"}, {0x0b, "RIP"},
    {0x0c, "R"},   {0x0d, "AP"}, {0x0e, "P"},   {0x0f, "AP"}, {0x10, "AP"}, {0x11, "A"},
    {0x12, "AY"},  {0x13, "X"},  {0x14, "X"},   {0x16, "VP"}, {0x17, "VP"}, {0x1c, "FR"},
    {0x1d, "RP"},  {0x20, "P"},  {0x21, "P"},   {0x22, "P"},  {0x23, "IP"}, {0x24, "P"},
    {0x25, "IP"},  {0x26, "RP"}, {0x27, "P"},   {0x28, "P"},  {0x29, "IP"}, {0x2a, "RP"},
    {0x2b, "RIP"}, {0x64, "DP"}, {0x65, "DIP"},
};

// IBTA annex 14: as RC, with one header more in requests.
std::map<unsigned, std::string> with_xrc(std::map<unsigned, std::string> table) {
  for (unsigned rc = 0; rc < 0x20; ++rc) {
    const bool is_answer = rc >= 0x0d && rc <= 0x12;
    const auto found = table.find(rc);
    if (found != table.end()) table[0xa0 + rc] = (is_answer ? "" : "Q") + found->second;
  }
  return table;
}

std::string letters(const OpcodeInfo& info) {
  std::string result;
  if (info.deth) result += 'D';
  if (info.xrceth) result += 'Q';
  if (info.feth) result += 'F';
  if (info.reth) result += 'R';
  if (info.atomic_eth) result += 'X';
  if (info.aeth) result += 'A';
  if (info.atomic_ack_eth) result += 'Y';
  if (info.immediate) result += 'I';
  if (info.ieth) result += 'V';
  if (info.payload) result += 'P';
  return result;
}

TEST(Opcode, TableIsThatOfTheStandard) {
  const auto all = with_xrc(kExpected);
  for (unsigned number = 0; number < 256; ++number) {
    const OpcodeInfo& info = opcode_info(static_cast<Opcode>(number));
    const auto expected = all.find(number);
    ASSERT_EQ(info.is_valid(), expected != all.end()) << std::hex << number;
    EXPECT_EQ(static_cast<unsigned>(info.opcode), number);
    if (!info.is_valid()) continue;
    EXPECT_EQ(letters(info), expected->second) << std::hex << number;
    EXPECT_EQ(static_cast<unsigned>(info.service), number >> 5);
  }
}

TEST(Opcode, OnlyAnswersAreNoRequests) {
  for (const auto& [number, unused] : kExpected) {
    const bool is_answer = number >= 0x0d && number <= 0x12;
    EXPECT_EQ(opcode_info(static_cast<Opcode>(number)).is_request, !is_answer) << number;
  }
}

TEST(Opcode, SendTakesAReceiveAtItsBeginningAndCompletesItAtItsEnd) {
  EXPECT_TRUE(opcode_info(Opcode::kRcSendFirst).takes_receive);
  EXPECT_FALSE(opcode_info(Opcode::kRcSendFirst).completes_receive);
  EXPECT_FALSE(opcode_info(Opcode::kRcSendMiddle).takes_receive);
  EXPECT_FALSE(opcode_info(Opcode::kRcSendLastInvalidate).takes_receive);
  EXPECT_TRUE(opcode_info(Opcode::kRcSendLastInvalidate).completes_receive);
  EXPECT_TRUE(opcode_info(Opcode::kUdSendOnly).takes_receive);
  EXPECT_TRUE(opcode_info(Opcode::kUdSendOnly).completes_receive);
}

TEST(Opcode, WriteTakesAReceiveOnlyWithItsImmediateData) {
  for (const Opcode opcode : {Opcode::kRcWriteLastImmediate, Opcode::kUcWriteOnlyImmediate}) {
    EXPECT_TRUE(opcode_info(opcode).takes_receive && opcode_info(opcode).completes_receive);
  }
  for (const Opcode opcode : {Opcode::kRcWriteFirst, Opcode::kRcWriteLast, Opcode::kRcWriteOnly,
                              Opcode::kRcReadRequest}) {
    EXPECT_FALSE(opcode_info(opcode).takes_receive || opcode_info(opcode).completes_receive);
  }
}

TEST(Opcode, EveryOpcodeIsPickedByWhatItMeans) {
  for (const OpcodeInfo& info : kOpcodes) {
    if (!info.is_valid()) continue;
    EXPECT_EQ(pick_opcode(info.service, info.kind, info.place, info.suffix()), info.opcode);
  }
}

TEST(Opcode, SuffixWaitsForTheLastPacket) {
  EXPECT_EQ(pick_opcode(Service::kRc, Kind::kSend, Place::kFirst, Suffix::kInvalidate),
            Opcode::kRcSendFirst);
  EXPECT_EQ(pick_opcode(Service::kRc, Kind::kSend, Place::kMiddle, Suffix::kImmediate),
            Opcode::kRcSendMiddle);
  EXPECT_EQ(pick_opcode(Service::kRc, Kind::kSend, Place::kLast, Suffix::kInvalidate),
            Opcode::kRcSendLastInvalidate);
}

TEST(OpcodeDeathTest, PickingWhatAServiceDoesNotHaveIsOurFault) {
  EXPECT_DEATH((void)pick_opcode(Service::kUd, Kind::kWrite, Place::kOnly), "");
}

TEST(Opcode, MessagesFollowTheOrderFirstMiddleLast) {
  const auto legal = [](bool in_message, Kind current, Opcode next) {
    return follows(in_message, current, opcode_info(next));
  };
  EXPECT_TRUE(legal(false, Kind::kSend, Opcode::kRcWriteOnly));
  EXPECT_TRUE(legal(false, Kind::kSend, Opcode::kRcSendFirst));
  EXPECT_FALSE(legal(false, Kind::kSend, Opcode::kRcSendMiddle));
  EXPECT_FALSE(legal(false, Kind::kSend, Opcode::kRcSendLast));
  EXPECT_TRUE(legal(true, Kind::kSend, Opcode::kRcSendMiddle));
  EXPECT_TRUE(legal(true, Kind::kSend, Opcode::kRcSendLastInvalidate));
  EXPECT_FALSE(legal(true, Kind::kSend, Opcode::kRcWriteLast));
  EXPECT_FALSE(legal(true, Kind::kSend, Opcode::kRcSendOnly));
  EXPECT_FALSE(legal(true, Kind::kWrite, Opcode::kRcReadRequest));
}

}  // namespace
}  // namespace uroce::wire
