// SPDX-License-Identifier: BSD-2-Clause
#include "wire/parse.h"

#include <gtest/gtest.h>

#include <memory>

#include "unit/wire/packets.h"

namespace uroce::wire {
namespace {

// Parses a copy that ends where its allocation ends, so that AddressSanitizer sees any read behind
// it.
struct Parsed {
  explicit Parsed(const ByteVector& from, std::size_t bytes)
      : copy(std::make_unique<std::byte[]>(bytes)) {
    std::copy_n(from.begin(), bytes, copy.get());
    packet.bytes = {copy.get(), bytes};
    reason = parse(packet, view);
  }
  explicit Parsed(const ByteVector& from) : Parsed(from, from.size()) {}

  std::unique_ptr<std::byte[]> copy;
  RxPacket packet;
  PacketView view;
  DropReason reason;
};

DropReason expected_reason(unsigned number, std::size_t bytes, unsigned pad) {
  const OpcodeInfo& info = opcode_info(static_cast<Opcode>(number));
  if (bytes < 12) return DropReason::kTooShort;
  if (!info.is_valid()) return DropReason::kUnknownOpcode;
  if (bytes < info.header_bytes) return DropReason::kTruncatedHeaders;
  const std::size_t rest = bytes - info.header_bytes;
  if (rest % 4 != 0 || (rest != 0 && !info.payload)) return DropReason::kBadLength;
  return pad > rest ? DropReason::kBadPad : DropReason::kNone;
}

TEST(Parse, EveryLengthOfEveryOpcodeWithEveryPad) {
  unsigned accepted = 0;
  for (unsigned number = 0; number < 256; ++number) {
    const std::size_t header_bytes =
        std::max<std::size_t>(opcode_info(static_cast<Opcode>(number)).header_bytes, 40);
    for (std::size_t bytes = 0; bytes <= header_bytes + 8; ++bytes) {
      for (unsigned pad = 0; pad < 4; ++pad) {
        ByteVector packet = counting_bytes(header_bytes + 8);
        packet[0] = static_cast<std::byte>(number);
        packet[1] = static_cast<std::byte>(pad << 4);
        const Parsed parsed(packet, bytes);
        ASSERT_EQ(parsed.reason, expected_reason(number, bytes, pad))
            << "opcode " << number << " bytes " << bytes << " pad " << pad << ": "
            << name(parsed.reason);
        if (parsed.reason != DropReason::kNone) continue;
        ++accepted;
        EXPECT_EQ(parsed.view.payload.size(), bytes - parsed.view.opcode->header_bytes - pad);
      }
    }
  }
  EXPECT_GT(accepted, 300u);
}

TEST(Parse, EveryOtherTransportVersionIsDropped) {
  ByteVector packet = packet_bytes(sample_view(Opcode::kRcSendOnly));
  for (unsigned version = 1; version < 16; ++version) {
    packet[1] = static_cast<std::byte>(version);
    EXPECT_EQ(Parsed(packet).reason, DropReason::kBadVersion);
  }
}

TEST(Parse, EveryFieldOfEveryOpcodeComesBack) {
  for (const OpcodeInfo& info : kOpcodes) {
    if (!info.is_valid()) continue;
    const PacketView sent = sample_view(info.opcode);
    const ByteVector payload = counting_bytes(info.payload ? 5 : 0);
    const Parsed parsed(packet_bytes(sent, payload));
    const PacketView& got = parsed.view;
    ASSERT_EQ(parsed.reason, DropReason::kNone);
    EXPECT_EQ(got.opcode, &info);
    EXPECT_EQ(got.packet, &parsed.packet);
    Bth bth = sent.bth;
    bth.pad_bytes = info.payload ? 3 : 0;
    EXPECT_EQ(got.bth, bth);
    EXPECT_EQ(to_vector(got.payload), payload);
    if (info.deth) {
      EXPECT_EQ(got.deth, sent.deth);
    }
    if (info.xrceth) {
      EXPECT_EQ(got.xrceth, sent.xrceth);
    }
    if (info.reth) {
      EXPECT_EQ(got.reth, sent.reth);
    }
    if (info.atomic_eth) {
      EXPECT_EQ(got.atomic_eth, sent.atomic_eth);
    }
    if (info.aeth) {
      EXPECT_EQ(got.aeth, sent.aeth);
    }
    if (info.atomic_ack_eth) {
      EXPECT_EQ(got.atomic_ack_eth, sent.atomic_ack_eth);
    }
    if (info.immediate) {
      EXPECT_EQ(got.immediate, sent.immediate);
    }
    if (info.ieth) {
      EXPECT_EQ(got.ieth, sent.ieth);
    }
  }
}

RxPacket detached(const ByteVector& headers, const ByteVector& payload) {
  RxPacket packet;
  packet.bytes = headers;
  packet.detached_payload = payload;
  packet.payload_is_detached = true;
  return packet;
}

TEST(Parse, DetachedPayloadIsTakenAsItIs) {
  ByteVector headers = packet_bytes(sample_view(Opcode::kRcWriteFirst));
  headers[1] |= std::byte{0x30};
  const ByteVector payload = counting_bytes(7);
  PacketView view;
  ASSERT_EQ(parse(detached(headers, payload), view), DropReason::kNone);
  EXPECT_EQ(view.payload.data(), payload.data());
  EXPECT_EQ(view.payload.size(), 7u);
}

TEST(Parse, BytesBehindTheHeadersOfADetachedPayloadAreDropped) {
  ByteVector headers = packet_bytes(sample_view(Opcode::kRcWriteFirst));
  const ByteVector payload = counting_bytes(8);
  headers.push_back({});
  PacketView view;
  EXPECT_EQ(parse(detached(headers, payload), view), DropReason::kBadLength);
  headers.resize(headers.size() - 2);
  EXPECT_EQ(parse(detached(headers, payload), view), DropReason::kTruncatedHeaders);
}

TEST(Parse, DetachedPayloadOfAnOpcodeWithoutOneIsDropped) {
  const ByteVector headers = packet_bytes(sample_view(Opcode::kRcReadRequest));
  const ByteVector payload = counting_bytes(4);
  PacketView view;
  EXPECT_EQ(parse(detached(headers, {}), view), DropReason::kNone);
  EXPECT_EQ(parse(detached(headers, payload), view), DropReason::kBadLength);
}

TEST(Parse, RunIsTakenWhole) {
  const ByteVector headers = packet_bytes(sample_view(Opcode::kRcSendOnly));
  const ByteVector payload = counting_bytes(2500);
  RxPacket packet = detached(headers, payload);
  packet.packet_count = 3;
  PacketView view;
  ASSERT_EQ(parse(packet, view), DropReason::kNone);
  EXPECT_EQ(view.packet_count, 3);
  EXPECT_EQ(view.payload.size(), 2500u);
}

TEST(Parse, PacketCountThatThePayloadCannotHaveIsDropped) {
  const ByteVector send = packet_bytes(sample_view(Opcode::kRcSendOnly));
  const ByteVector acknowledge = packet_bytes(sample_view(Opcode::kRcAcknowledge));
  const ByteVector payload = counting_bytes(2);
  PacketView view;
  for (const unsigned count : {0u, 3u, 65'535u}) {
    RxPacket packet = detached(send, payload);
    packet.packet_count = static_cast<std::uint16_t>(count);
    EXPECT_EQ(parse(packet, view), DropReason::kBadRun) << count;
  }
  RxPacket packet = detached(acknowledge, {});
  packet.packet_count = 2;
  EXPECT_EQ(parse(packet, view), DropReason::kBadRun);
}

TEST(Parse, EveryReasonHasAName) {
  for (std::size_t reason = 0; reason < kDropReasonCount; ++reason) {
    EXPECT_NE(name(static_cast<DropReason>(reason)), "?");
  }
  EXPECT_EQ(name(static_cast<DropReason>(kDropReasonCount)), "?");
}

}  // namespace
}  // namespace uroce::wire
