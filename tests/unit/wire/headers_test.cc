// SPDX-License-Identifier: BSD-2-Clause
// Headers as bytes, against literals written down by hand from the standard's drawings.
#include "wire/headers.h"

#include <gtest/gtest.h>

#include "unit/wire/packets.h"
#include "wire/build.h"

namespace uroce::wire {
namespace {

template <typename Value>
ByteVector wire_bytes(const Value& value) {
  const auto wire = to_wire(value);
  return to_vector(std::as_bytes(std::span(&wire, 1)));
}

template <typename Value>
void expect_round_trip(const Value& value) {
  EXPECT_EQ(from_wire(to_wire(value)), value);
}

ByteVector wire_bytes(const Bth& bth) {
  ByteVector result(kBthBytes);
  store_bth(result.data(), to_words(bth));
  return result;
}

void expect_round_trip(const Bth& bth) {
  EXPECT_EQ(from_words(load_bth(wire_bytes(bth).data())), bth);
}

TEST(Bth, LiesOnTheWireAsDrawn) {
  const Bth bth = {.opcode = Opcode::kRcSendLast,
                   .solicited = true,
                   .mig_req = false,
                   .pad_bytes = 3,
                   .pkey = {0x1234},
                   .fecn = true,
                   .destination = {0xab'cdef},
                   .ack_request = true,
                   .psn = Psn(0x98'7654)};
  EXPECT_EQ(wire_bytes(bth),
            bytes({0x02, 0xb0, 0x12, 0x34, 0x80, 0xab, 0xcd, 0xef, 0x80, 0x98, 0x76, 0x54}));
  expect_round_trip(bth);
}

TEST(Bth, EveryFlagHasItsOwnBit) {
  for (unsigned set = 0; set < 32; ++set) {
    expect_round_trip(Bth{.opcode = Opcode::kUdSendOnly,
                          .solicited = (set & 1) != 0,
                          .mig_req = (set & 2) != 0,
                          .pad_bytes = static_cast<std::uint8_t>(set & 3),
                          .fecn = (set & 4) != 0,
                          .becn = (set & 8) != 0,
                          .ack_request = (set & 16) != 0});
  }
}

TEST(Bth, DefaultsAreWhatNicsSend) {
  EXPECT_EQ(wire_bytes(Bth{.opcode = Opcode::kRcSendOnly}),
            bytes({0x04, 0x40, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Bth, ReservedBitsAreIgnored) {
  const BthWords words = {.opcode_flags_pkey = 0x0040'ffff,
                          .congestion_and_destination = 0x3f00'0007,
                          .ack_request_and_psn = 0x7f00'0009};
  EXPECT_EQ(from_words(words), (Bth{.destination = {7}, .psn = Psn(9)}));
}

TEST(Bth, WordsAreChangedAFieldAtATime) {
  BthWords words = to_words(sample_view(Opcode::kRcWriteFirst).bth);
  Bth expected = from_words(words);
  words.set_opcode(expected.opcode = Opcode::kUdSendOnlyImmediate);
  EXPECT_EQ(from_words(words), expected);
  words.set_pad(expected.pad_bytes = 3);
  EXPECT_EQ(from_words(words), expected);
  words.set_pad(expected.pad_bytes = 1);
  EXPECT_EQ(from_words(words), expected);
  words.set_psn(expected.psn = Psn(0xff'ffff));
  EXPECT_EQ(from_words(words), expected);
}

TEST(Reth, LiesOnTheWireAsDrawn) {
  const Reth reth = {
      .virtual_address = 0x0102'0304'0506'0708, .rkey = {0x1112'1314}, .dma_bytes = 0x2122'2324};
  EXPECT_EQ(wire_bytes(reth),
            bytes({1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24}));
  expect_round_trip(reth);
}

TEST(AtomicEth, LiesOnTheWireAsDrawn) {
  const AtomicEth eth = {.virtual_address = 0x0102'0304'0506'0708,
                         .rkey = {0x1112'1314},
                         .swap_or_add = 0x2122'2324'2526'2728,
                         .compare = 0x3132'3334'3536'3738};
  EXPECT_EQ(wire_bytes(eth), bytes({1,    2,    3,    4,    5,    6,    7,    8,    0x11, 0x12,
                                    0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
                                    0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38}));
  expect_round_trip(eth);
  expect_round_trip(AtomicAckEth{0x4142'4344'4546'4748});
}

TEST(Deth, LiesOnTheWireAsDrawn) {
  const Deth deth = {.qkey = {0x8000'0001}, .source = {0x12'3456}};
  EXPECT_EQ(wire_bytes(deth), bytes({0x80, 0, 0, 1, 0, 0x12, 0x34, 0x56}));
  expect_round_trip(deth);
}

TEST(Immediate, AndIethAreOneWord) {
  EXPECT_EQ(wire_bytes(Immediate{0xcafe'0006}), bytes({0xca, 0xfe, 0, 6}));
  EXPECT_EQ(wire_bytes(Ieth{{0x0102'0304}}), bytes({1, 2, 3, 4}));
  expect_round_trip(Immediate{0xcafe'0006});
  expect_round_trip(Ieth{{0x0102'0304}});
}

TEST(Aeth, SyndromesAreThoseOfTheStandard) {
  EXPECT_EQ(Syndrome::ack().value, 0x1f);
  EXPECT_EQ(Syndrome::ack(5).value, 0x05);
  EXPECT_EQ(Syndrome::rnr_nak(20).value, 0x34);
  EXPECT_EQ(Syndrome::nak(NakCode::kPsnSequence).value, 0x60);
  EXPECT_EQ(Syndrome::nak(NakCode::kInvalidRequest).value, 0x61);
  EXPECT_EQ(Syndrome::nak(NakCode::kRemoteAccess).value, 0x62);
  EXPECT_EQ(Syndrome::nak(NakCode::kRemoteOperational).value, 0x63);
  EXPECT_EQ(Syndrome::nak(NakCode::kInvalidRdRequest).value, 0x64);
  EXPECT_EQ(wire_bytes(Aeth{Syndrome::rnr_nak(20), {0x01'0203}}), bytes({0x34, 1, 2, 3}));
}

TEST(Aeth, EverySyndromeIsReadByItsKind) {
  for (unsigned value = 0; value < 256; ++value) {
    const Syndrome syndrome{static_cast<std::uint8_t>(value)};
    expect_round_trip(Aeth{syndrome, {value}});
    EXPECT_EQ(static_cast<unsigned>(syndrome.kind()), value >> 5 & 3);
    EXPECT_EQ(syndrome.rnr_timer(), value & 31);
    const bool reserved = (value >> 5 & 3) == 2 || ((value >> 5 & 3) == 3 && (value & 31) > 4);
    EXPECT_EQ(syndrome.is_known(), !reserved) << value;
  }
}

// IBTA table 45.
TEST(Aeth, RnrTimersAreThoseOfTheStandard) {
  const double milliseconds_by_code[32] = {
      655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,  0.32,
      0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24, 15.36,
      20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
  for (std::size_t code = 0; code < 32; ++code) {
    EXPECT_DOUBLE_EQ(static_cast<double>(kRnrTimers[code].ns) / 1e6, milliseconds_by_code[code]);
  }
}

TEST(Aeth, CreditCodesNeverPromiseMoreThanThereIs) {
  for (std::uint32_t receives = 0; receives < 70'000; ++receives) {
    const std::uint8_t code = credit_code_for(receives);
    ASSERT_LE(kCredits[code], receives);
    if (code < 30) {
      ASSERT_GT(kCredits[code + 1u], receives);
    }
  }
}

TEST(Build, WritesHeadersOneBehindTheOther) {
  TxFrame frame;
  frame.payload_bytes = 5;
  build(frame,
        Bth{.opcode = Opcode::kRcWriteOnlyImmediate, .destination = {0x12}, .psn = Psn(0x0a0009)},
        Reth{.virtual_address = 0x2000, .rkey = {0x3c4}, .dma_bytes = 5}, Immediate{0xcafe'0006});
  EXPECT_EQ(to_vector(frame.headers()),
            bytes({0x0b, 0x70, 0xff, 0xff, 0, 0, 0, 0x12, 0, 0x0a, 0, 9, 0,    0,    0, 0,
                   0,    0,    0x20, 0,    0, 0, 3, 0xc4, 0, 0,    0, 5, 0xca, 0xfe, 0, 6}));
  EXPECT_EQ(frame.destination_qpn, Qpn{0x12});
}

TEST(BuildDeathTest, HeadersThatTheOpcodeDoesNotHaveAreOurFault) {
  TxFrame frame;
  EXPECT_DEATH(build(frame, Bth{.opcode = Opcode::kRcSendOnly}, Reth{}), "");
}

}  // namespace
}  // namespace uroce::wire
