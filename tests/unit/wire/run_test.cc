// SPDX-License-Identifier: BSD-2-Clause
#include "wire/run.h"

#include <gtest/gtest.h>

#include "unit/wire/packets.h"

namespace uroce::wire {
namespace {

constexpr std::uint16_t kMtu = 256;

TxFrame make_run(Opcode opcode, std::uint16_t packets, std::uint32_t payload_bytes) {
  TxFrame frame;
  frame.packet_count = packets;
  frame.segment_bytes = kMtu;
  frame.payload_bytes = payload_bytes;
  build_as(frame, sample_view(opcode));
  return frame;
}

std::vector<Opcode> opcodes_of(const TxFrame& frame) {
  std::vector<Opcode> result;
  for (unsigned i = 0; i < frame.packet_count; ++i) result.push_back(run_opcode(frame, i).opcode);
  return result;
}

// Packet `index` parsed back from its headers and as many zero bytes as it has payload and pad.
PacketView parse_packet(const TxFrame& frame, unsigned index) {
  static ByteVector bytes;
  static RxPacket packet;
  std::array<std::byte, kMaxHeaderBytes> headers;
  const std::size_t header_bytes = run_headers(frame, index, headers);
  bytes = to_vector(std::span(headers).first(header_bytes));
  bytes.resize(run_packet_bytes(frame, index));
  packet.bytes = bytes;
  PacketView view;
  EXPECT_EQ(parse(packet, view), DropReason::kNone);
  EXPECT_EQ(view.payload.size(), run_payload_bytes(frame, index));
  return view;
}

TEST(Run, OpcodesFollowFromWhatTheRunHolds) {
  using enum Opcode;
  using Opcodes = std::vector<Opcode>;
  EXPECT_EQ(opcodes_of(make_run(kRcSendOnly, 1, 7)), Opcodes{kRcSendOnly});
  EXPECT_EQ(opcodes_of(make_run(kRcWriteOnlyImmediate, 3, 520)),
            (Opcodes{kRcWriteFirst, kRcWriteMiddle, kRcWriteLastImmediate}));
  EXPECT_EQ(opcodes_of(make_run(kRcSendOnlyInvalidate, 2, 512)),
            (Opcodes{kRcSendFirst, kRcSendLastInvalidate}));
  EXPECT_EQ(opcodes_of(make_run(kUcSendFirst, 3, 768)),
            (Opcodes{kUcSendFirst, kUcSendMiddle, kUcSendMiddle}));
  EXPECT_EQ(opcodes_of(make_run(kRcWriteMiddle, 2, 512)),
            (Opcodes{kRcWriteMiddle, kRcWriteMiddle}));
  EXPECT_EQ(opcodes_of(make_run(kRcReadResponseLast, 2, 257)),
            (Opcodes{kRcReadResponseMiddle, kRcReadResponseLast}));
  EXPECT_EQ(opcodes_of(make_run(kRcReadResponseOnly, 3, 513)),
            (Opcodes{kRcReadResponseFirst, kRcReadResponseMiddle, kRcReadResponseLast}));
}

TEST(Run, EveryHeaderGoesWithItsPacket) {
  const PacketView sent = sample_view(Opcode::kRcWriteOnlyImmediate);
  const TxFrame frame = make_run(Opcode::kRcWriteOnlyImmediate, 3, 513);
  EXPECT_EQ(parse_packet(frame, 0).reth, sent.reth);
  EXPECT_EQ(parse_packet(frame, 1).opcode->header_bytes, kBthBytes);
  EXPECT_EQ(parse_packet(frame, 2).immediate, sent.immediate);
}

TEST(Run, AethGoesWithTheEndsOfAReadResponse) {
  const PacketView sent = sample_view(Opcode::kRcReadResponseOnly);
  const TxFrame frame = make_run(Opcode::kRcReadResponseOnly, 3, 768);
  EXPECT_EQ(parse_packet(frame, 0).aeth, sent.aeth);
  EXPECT_EQ(parse_packet(frame, 1).opcode->header_bytes, kBthBytes);
  EXPECT_EQ(parse_packet(frame, 2).aeth, sent.aeth);
}

TEST(Run, IethGoesWithTheLastPacket) {
  const TxFrame frame = make_run(Opcode::kRcSendOnlyInvalidate, 3, 700);
  EXPECT_EQ(parse_packet(frame, 2).ieth, sample_view(Opcode::kRcSendOnlyInvalidate).ieth);
  EXPECT_EQ(parse_packet(frame, 0).opcode->header_bytes, kBthBytes);
}

TEST(Run, PsnsCountUpThroughTheWrap) {
  TxFrame frame;
  frame.packet_count = 3;
  frame.segment_bytes = kMtu;
  frame.payload_bytes = 3 * kMtu;
  build(frame, Bth{.opcode = Opcode::kRcSendOnly, .psn = Psn(0xff'ffff)});
  EXPECT_EQ(parse_packet(frame, 0).bth.psn, Psn(0xff'ffff));
  EXPECT_EQ(parse_packet(frame, 1).bth.psn, Psn(0));
  EXPECT_EQ(parse_packet(frame, 2).bth.psn, Psn(1));
}

TEST(Run, FlagsAndPadAreThoseOfTheLastPacket) {
  const TxFrame frame = make_run(Opcode::kRcSendOnly, 3, 2 * kMtu + 6);
  for (unsigned i = 0; i < 3; ++i) {
    const Bth bth = parse_packet(frame, i).bth;
    EXPECT_EQ(bth.ack_request, i == 2);
    EXPECT_EQ(bth.solicited, i == 2);
    EXPECT_EQ(bth.pad_bytes, i == 2 ? 2 : 0);
    EXPECT_TRUE(bth.mig_req && bth.becn && !bth.fecn);
    EXPECT_EQ(bth.pkey, PKey{0x8123});
  }
}

TEST(Run, SinglePacketsComeOutAsTheyWentIn) {
  for (const OpcodeInfo& info : kOpcodes) {
    if (!info.is_valid()) continue;
    const TxFrame frame = make_run(info.opcode, 1, info.payload ? 9 : 0);
    std::array<std::byte, kMaxHeaderBytes> out;
    const std::size_t bytes = run_headers(frame, 0, out);
    EXPECT_EQ(to_vector(std::span(out).first(bytes)), to_vector(frame.headers()));
  }
}

TEST(Run, PayloadIsCutAtThePathMtu) {
  const TxFrame frame = make_run(Opcode::kRcSendOnly, 3, 2 * kMtu + 6);
  EXPECT_EQ(run_payload_bytes(frame, 0), kMtu);
  EXPECT_EQ(run_payload_bytes(frame, 1), kMtu);
  EXPECT_EQ(run_payload_bytes(frame, 2), 6u);
  EXPECT_EQ(run_packet_bytes(frame, 2), kBthBytes + 8);
}

std::vector<unsigned> trains_of(const TxFrame& frame, unsigned limit = 64) {
  std::vector<unsigned> result;
  for (unsigned i = 0; i < frame.packet_count; i += result.back()) {
    result.push_back(train_packets(frame, i, limit));
  }
  return result;
}

TEST(Train, SendIsOne) {
  EXPECT_EQ(trains_of(make_run(Opcode::kRcSendOnly, 5, 4 * kMtu + 1)), std::vector{5u});
}

TEST(Train, WriteIsTwoSinceItsFirstPacketIsLonger) {
  EXPECT_EQ(trains_of(make_run(Opcode::kRcWriteOnly, 5, 4 * kMtu + 1)), (std::vector{2u, 3u}));
  EXPECT_EQ(trains_of(make_run(Opcode::kRcWriteOnly, 2, 2 * kMtu)), std::vector{2u});
}

TEST(Train, LongerLastPacketGoesAlone) {
  EXPECT_EQ(trains_of(make_run(Opcode::kRcSendOnlyImmediate, 3, 3 * kMtu)), (std::vector{2u, 1u}));
  EXPECT_EQ(trains_of(make_run(Opcode::kRcSendOnlyImmediate, 3, 3 * kMtu - 4)), std::vector{3u});
  EXPECT_EQ(trains_of(make_run(Opcode::kRcSendOnlyImmediate, 3, 3 * kMtu - 3)),
            (std::vector{2u, 1u}));
}

TEST(Train, LimitIsKept) {
  EXPECT_EQ(trains_of(make_run(Opcode::kRcSendOnly, 5, 5 * kMtu), 2), (std::vector{2u, 2u, 1u}));
  EXPECT_EQ(trains_of(make_run(Opcode::kRcWriteOnly, 3, 3 * kMtu), 1), (std::vector{1u, 1u, 1u}));
}

// What UDP_SEGMENT demands, for every kind of run, number of packets and length of the last.
TEST(Train, PacketsAreOfOneSizeButTheLastMayBeShorter) {
  using enum Opcode;
  for (const Opcode opcode :
       {kRcSendOnly, kRcSendOnlyImmediate, kRcSendFirst, kRcSendLastInvalidate, kRcWriteOnly,
        kRcWriteOnlyImmediate, kRcReadResponseOnly, kRcReadResponseFirst, kRcReadResponseLast}) {
    for (std::uint16_t packets = 1; packets <= 6; ++packets) {
      for (std::uint32_t last_bytes = 240; last_bytes <= kMtu; ++last_bytes) {
        const TxFrame frame = make_run(opcode, packets, (packets - 1u) * kMtu + last_bytes);
        unsigned at = 0;
        for (const unsigned train : trains_of(frame, 4)) {
          const std::uint32_t bytes = run_packet_bytes(frame, at);
          for (unsigned i = 1; i + 1 < train; ++i) {
            ASSERT_EQ(run_packet_bytes(frame, at + i), bytes);
          }
          ASSERT_LE(run_packet_bytes(frame, at + train - 1), bytes);
          at += train;
        }
        ASSERT_EQ(at, packets);
      }
    }
  }
}

TEST(PayloadCursor, HandsOutPiecesAcrossEntriesAndSkipsEmptyOnes) {
  const ByteVector source = counting_bytes(20);
  const ConstBytes all = source;
  const std::vector<ConstBytes> gather = {all.first(0), all.first(3), all.subspan(3, 0),
                                          all.subspan(3, 10), all.subspan(13)};
  for (std::size_t packet_bytes = 1; packet_bytes <= 20; ++packet_bytes) {
    PayloadCursor cursor(gather);
    ByteVector got;
    while (got.size() < source.size()) {
      for (std::size_t left = std::min(packet_bytes, source.size() - got.size()); left != 0;) {
        const ConstBytes piece = cursor.take(left);
        ASSERT_TRUE(!piece.empty() && piece.size() <= left);
        left -= piece.size();
        append(got, piece);
      }
    }
    EXPECT_EQ(got, source);
  }
}

TEST(PayloadCursor, CopiesWhatIsNext) {
  const ByteVector source = counting_bytes(20);
  const ConstBytes all = source;
  const std::vector<ConstBytes> gather = {all.first(5), all.subspan(5)};
  PayloadCursor cursor(gather);
  ByteVector out(12);
  cursor.copy(out);
  EXPECT_EQ(out, to_vector(all.first(12)));
  cursor.copy(std::span(out).first(8));
  EXPECT_EQ(to_vector(std::span(out).first(8)), to_vector(all.subspan(12)));
}

}  // namespace
}  // namespace uroce::wire
