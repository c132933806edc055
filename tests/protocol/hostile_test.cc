// SPDX-License-Identifier: BSD-2-Clause
// A hostile peer against our responder: guesses, floods, replays, wrong lengths, wrong addresses.
// Nothing outside of what was granted changes or is sent, and no packet costs more than one answer.
#include <algorithm>

#include "protocol/fixture.h"
#include "support/unwanted.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::NakCode;
using wire::Opcode;

constexpr std::size_t kGrantedAt = 8192;
constexpr std::uint32_t kGranted = 4096;

// Of the buffer only [kGrantedAt, kGrantedAt + kGranted) is registered.
class Hostile : public RcTest {
 protected:
  explicit Hostile(QpOptions options = {}) : RcTest(options) {
    memory::MemoryRegion region = *endpoint.hca.regions().find(Endpoint::kKey);
    (void)endpoint.hca.regions().erase(Endpoint::kKey);
    region.iova = endpoint.address(kGrantedAt);
    region.base = endpoint.buffer.data() + kGrantedAt;
    region.length = kGranted;
    (void)endpoint.hca.regions().insert(region);
    for (std::size_t i = 0; i < endpoint.buffer.size(); ++i) {
      endpoint.buffer[i] = std::byte(i * 13 + (i >> 8));
    }
    before = endpoint.buffer;
  }

  // Outside of what was granted, and with `whole` inside of it too.
  [[nodiscard]] bool is_untouched(bool whole = true) const {
    const auto* now = endpoint.buffer.data();
    const std::size_t end = kGrantedAt + kGranted;
    return std::memcmp(now, before.data(), kGrantedAt) == 0 &&
           std::memcmp(now + end, before.data() + end, before.size() - end) == 0 &&
           (!whole || std::memcmp(now + kGrantedAt, before.data() + kGrantedAt, kGranted) == 0);
  }

  void write(Opcode opcode, std::uint32_t psn, std::size_t bytes) {
    endpoint.receive(make_packet(bth(opcode, psn, true), bytes));
  }
  void write_first(Opcode opcode, std::uint32_t psn, std::size_t bytes, wire::Reth target) {
    endpoint.receive(make_packet(bth(opcode, psn, true), bytes, target));
  }
  void read(std::uint32_t psn, std::size_t offset, std::uint32_t bytes) {
    endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, psn, true), 0, reth(offset, bytes)));
  }
  [[nodiscard]] bool is_alive() const { return qp.qp.state.load() == QpState::kRts; }

  std::vector<std::byte> before;
};

TEST_F(Hostile, GuessedQueuePairNumbersReachNothing) {
  std::uint64_t guesses = 0;
  for (std::uint32_t qpn = 0; qpn < 0x100'0000; qpn += 0x3b) {
    if (qpn == kOurs.value) continue;
    wire::Bth header = bth(Opcode::kRcWriteOnly, kFirstPsn, true);
    header.destination = {qpn};
    endpoint.receive(make_packet(header, 8, reth(kGrantedAt, 8)));
    ++guesses;
  }
  EXPECT_EQ(endpoint.hca.counters().rx_unknown_qpn, guesses);
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_TRUE(is_untouched());
}

TEST_F(Hostile, GuessedPsnsCostOneAnswerATurnAndChangeNothing) {
  for (std::uint32_t psn = 0; psn < 0x100'0000; psn += 0x101) {
    if (psn == kFirstPsn) continue;
    write_only(psn, kGrantedAt, 8);
    if (psn % 0x1010 == 0) {
      EXPECT_LE(transmits().size(), 1U);
    }
  }
  EXPECT_LE(transmits().size(), 1U);
  EXPECT_TRUE(is_untouched());
  EXPECT_TRUE(is_alive());
  EXPECT_EQ(endpoint.hca.counters().naks_sent, 1U);
}

// Keys are 32 random bits, and a peer has one guess a connection.
TEST_F(Hostile, TheFirstGuessedKeyEndsTheConnection) {
  wire::Reth wrong = reth(kGrantedAt, 8);
  wrong.rkey = {Endpoint::kKey ^ 1};
  write_first(Opcode::kRcWriteOnly, kFirstPsn, 8, wrong);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn}));
  EXPECT_EQ(packets.front().view().aeth.syndrome, wire::Syndrome::nak(NakCode::kRemoteAccess));
  for (std::uint32_t psn = kFirstPsn; psn < kFirstPsn + 10; ++psn) {
    write_only(psn, kGrantedAt, 8);
    read(psn, kGrantedAt, 8);
  }
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_TRUE(is_untouched());
}

struct Range {
  const char* name;
  std::uint64_t offset;  // from the first byte granted
  std::uint32_t bytes;
};
class HostileRanges : public Hostile, public ::testing::WithParamInterface<Range> {
 protected:
  void try_with(Opcode opcode, std::size_t payload_bytes) {
    wire::Reth target = reth(kGrantedAt, GetParam().bytes);
    target.virtual_address += GetParam().offset;
    write_first(opcode, kFirstPsn, payload_bytes, target);
    EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn}));
    EXPECT_EQ(packets.front().view().aeth.syndrome, wire::Syndrome::nak(NakCode::kRemoteAccess));
    EXPECT_TRUE(is_untouched());
  }
};

TEST_P(HostileRanges, AreNotWrittenTo) {
  const bool is_long = GetParam().bytes > kMtu;
  try_with(is_long ? Opcode::kRcWriteFirst : Opcode::kRcWriteOnly,
           is_long ? kMtu : GetParam().bytes);
}

TEST_P(HostileRanges, AreNotRead) { try_with(Opcode::kRcReadRequest, 0); }

INSTANTIATE_TEST_SUITE_P(
    Kinds, HostileRanges,
    ::testing::Values(Range{"BeginsBefore", ~0ULL, 8}, Range{"IsTheByteBefore", ~0ULL, 1},
                      Range{"IsTheByteBehind", kGranted, 1}, Range{"EndsBehind", kGranted - 7, 8},
                      Range{"IsOneLonger", 0, kGranted + 1}, Range{"IsFarAway", 1 << 20, 8},
                      Range{"IsHuge", 0, 0x8000'0000}, Range{"IsWayBelow", 1ULL << 63, 8}),
    [](const auto& kind) { return std::string(kind.param.name); });

// What the packets hold and what the RETH promised must agree, packet by packet.
struct Lengths {
  const char* name;
  std::uint32_t promised;
  std::vector<std::size_t> first_middle_last;
};
class HostileLengths : public Hostile, public ::testing::WithParamInterface<Lengths> {};

TEST_P(HostileLengths, EndTheConnectionBeforeTheyDoHarm) {
  const auto& sizes = GetParam().first_middle_last;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto psn = static_cast<std::uint32_t>(kFirstPsn + i);
    if (i == 0) {
      const Opcode opcode = sizes.size() == 1 ? Opcode::kRcWriteOnly : Opcode::kRcWriteFirst;
      write_first(opcode, psn, sizes[i], reth(kGrantedAt, GetParam().promised));
    } else {
      write(i + 1 == sizes.size() ? Opcode::kRcWriteLast : Opcode::kRcWriteMiddle, psn, sizes[i]);
    }
  }
  (void)transmits();
  EXPECT_EQ(packets.back().view().aeth.syndrome, wire::Syndrome::nak(NakCode::kInvalidRequest));
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
  EXPECT_TRUE(is_untouched(false));
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostileLengths,
                         ::testing::Values(Lengths{"GrowInOnePacket", 8, {12}},
                                           Lengths{"ShrinkInOnePacket", 12, {8}},
                                           Lengths{"NothingOfSomething", 8, {0}},
                                           Lengths{"SomethingOfNothing", 0, {8}},
                                           Lengths{"MoreThanAPathMtu", 2048, {2048}},
                                           Lengths{"FirstIsTheWhole", 1024, {1024, 4}},
                                           Lengths{"LastIsLonger", 1028, {1024, 8}},
                                           Lengths{"LastIsShorter", 2048, {1024, 1020}},
                                           Lengths{"LastIsEmpty", 1024, {1024, 0}},
                                           Lengths{"LastComesEarly", 4096, {1024, 1024}},
                                           Lengths{"MiddleGoesOn", 2048, {1024, 1024, 1024}},
                                           Lengths{"ShortMiddle", 2052, {1024, 4, 1024}}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_F(Hostile, ASendLongerThanItsReceiveStopsAtItsEnd) {
  endpoint.post_receive(qp, 1, {endpoint.sge(kGrantedAt, 1500)});
  write(Opcode::kRcSendFirst, kFirstPsn, kMtu);
  write(Opcode::kRcSendMiddle, kFirstPsn + 1, kMtu);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalLengthError);
  EXPECT_EQ(std::memcmp(endpoint.buffer.data() + kGrantedAt + kMtu,
                        before.data() + kGrantedAt + kMtu, kGranted - kMtu),
            0);
  EXPECT_TRUE(is_untouched(false));
}

TEST_F(Hostile, OverlappingReadsAreAnsweredUpToTheLimitAndThenRefused) {
  for (std::uint32_t i = 0; i < 17; ++i) read(kFirstPsn + 4 * i, kGrantedAt, kGranted);
  const auto sent = transmits();
  ASSERT_FALSE(sent.empty());
  EXPECT_LE(sent.size(), 16U * 4 + 1);
  EXPECT_EQ(packets.back().view().aeth.syndrome, wire::Syndrome::nak(NakCode::kInvalidRequest));
  for (const Packet& packet : packets) {
    const wire::PacketView view = packet.view();
    if (view.payload.empty()) continue;
    const std::size_t offset = kGrantedAt + (view.bth.psn.value() - kFirstPsn) % 4 * kMtu;
    EXPECT_TRUE(std::ranges::equal(view.payload, std::span(before).subspan(offset, kMtu)));
  }
}

TEST_F(Hostile, AReadRepeatedAThousandTimesIsAnsweredOnceATurn) {
  read(kFirstPsn, kGrantedAt, kGranted);
  EXPECT_EQ(transmits().size(), 4U);
  for (int i = 0; i < 1000; ++i) read(kFirstPsn, kGrantedAt, kGranted);
  EXPECT_LE(transmits().size(), 4U);
}

// A repeated READ gets what it got, not what it says now.
TEST_F(Hostile, ARepeatedReadCannotAskForMore) {
  read(kFirstPsn, kGrantedAt, 8);
  EXPECT_EQ(transmits().size(), 1U);
  read(kFirstPsn, kGrantedAt, kGranted);
  read(kFirstPsn, kGrantedAt + 8, 8);
  read(kFirstPsn, 0, 8);
  EXPECT_THAT(transmits(), IsEmpty());
}

TEST_F(Hostile, WhatWasTakenBackIsNotReadByARepetition) {
  read(kFirstPsn, kGrantedAt, 8);
  EXPECT_EQ(transmits().size(), 1U);
  EXPECT_TRUE(endpoint.hca.regions().erase(Endpoint::kKey));
  read(kFirstPsn, kGrantedAt, 8);
  for (const Sent& sent : transmits()) EXPECT_EQ(sent.opcode, Opcode::kRcAcknowledge);
}

// Each packet of a recorded exchange once more, in both orders, when memory has moved on.
TEST(HostileReplay, ChangesNothingAndTakesNoReceive) {
  Pair pair(wire_link(), {}, 1 << 16);
  std::vector<Packet> recorded;
  for (std::uint64_t i = 0; i < 14; ++i) {
    const auto operation = static_cast<SendOperation>(i % 7);
    pair.b.post_receive(pair.qp_b, i, {pair.b.sge(40'000, 4096)});
    pair.a.post_send(pair.qp_a, {.operation = operation,
                                 .wr_id = i,
                                 .sges = {pair.a.sge(i * 2048, is_atomic(operation) ? 8 : 2000)},
                                 .remote_address = pair.b.address(i * 2048),
                                 .rkey = {Endpoint::kKey},
                                 .compare_add = 1});
  }
  ASSERT_TRUE(pair.run([&](unsigned, const Packet& packet) {
    if (packet.view().opcode->is_request) recorded.push_back(packet);
    return 1;
  }));
  (void)pair.b.poll_all();
  std::ranges::fill(pair.b.buffer, std::byte{0x77});
  const std::vector<std::byte> before = pair.b.buffer;
  const std::uint32_t receives = pair.qp_b.qp.receive_next;
  for (int order = 0; order < 2; ++order) {
    for (const Packet& packet : recorded) pair.b.receive(packet);
    EXPECT_LE(pair.b.transmit().size(), recorded.size() * 2);
    std::ranges::reverse(recorded);
  }
  EXPECT_EQ(pair.b.buffer, before);
  EXPECT_EQ(pair.qp_b.qp.receive_next, receives);
  EXPECT_THAT(pair.b.poll_all(), IsEmpty());
}

// 100,000 of each kind: one answer at most in a turn, one event at most, and the connection goes on
// where the kind does not end it.
class Flood : public Hostile, public ::testing::WithParamInterface<std::size_t> {
 protected:
  Flood() : unwanted(unwanted_packets(endpoint, kOurs, Psn(kFirstPsn)).at(GetParam())) {}

  Unwanted unwanted;
};

TEST_P(Flood, CostsAtMostOneAnswerATurn) {
  const std::vector<RxPacket> burst(32, received_from(unwanted, qp.qp.attributes.path));
  std::size_t answers = 0;
  for (int turn = 0; turn < 3125; ++turn) {
    endpoint.hca.on_packets(endpoint.now, kLocalLink, burst);
    const std::size_t sent = transmits().size();
    EXPECT_LE(sent, 1U);
    answers += sent;
  }
  EXPECT_LE(answers, unwanted.name == "duplicate WRITE" ? 3125U : 1U);
  EXPECT_EQ(is_alive(), !unwanted.ends_connection);
  EXPECT_TRUE(is_untouched());
  (void)endpoint.event();
  EXPECT_FALSE(endpoint.event());
  if (!is_alive()) return;
  write_only(kFirstPsn, kGrantedAt, 8);
  // One that was early was kept, once.
  const std::uint32_t kept = unwanted.name == "PSN ahead" ? 1 : 0;
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn + kept}));
}

std::string flood_name(const ::testing::TestParamInfo<std::size_t>& info) {
  std::string name;
  for (const char c : std::string_view(kUnwantedNames.at(info.param))) {
    if (c != ' ' && c != ',' && c != '_') name += c;
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Kinds, Flood, ::testing::Range<std::size_t>(0, kUnwantedNames.size()),
                         flood_name);

TEST_F(Hostile, AnotherAddressIsNotThePeerWhateverItSends) {
  const Gid stranger = {{0xfd, 0, 0, 66}};
  const Path& path = qp.qp.attributes.path;
  endpoint.post_send(qp, {.operation = SendOperation::kWrite,
                          .sges = {endpoint.sge(kGrantedAt, 8)},
                          .remote_address = 0x1000});
  EXPECT_EQ(transmits().size(), 1U);
  const Packet packets_of_all_kinds[] = {
      make_packet(bth(Opcode::kRcWriteOnly, kFirstPsn, true), 8, reth(kGrantedAt, 8)),
      make_packet(bth(Opcode::kRcReadRequest, kFirstPsn, true), 0, reth(kGrantedAt, 8)),
      make_packet(bth(Opcode::kRcAcknowledge, kFirstPsn), 0, wire::Aeth{wire::Syndrome::ack(), {}}),
      make_packet(bth(Opcode::kRcAcknowledge, kFirstPsn), 0,
                  wire::Aeth{wire::Syndrome::nak(NakCode::kRemoteAccess), {}})};
  for (const Packet& packet : packets_of_all_kinds) {
    for (const bool is_to_another : {false, true}) {
      RxPacket received = packet.received();
      received.source = is_to_another ? &path.destination : &stranger;
      received.destination = is_to_another ? &stranger : &path.source;
      endpoint.hca.on_packets(endpoint.now, kLocalLink, {&received, 1});
    }
  }
  EXPECT_EQ(endpoint.hca.counters().rx_wrong_address, 8U);
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_FALSE(endpoint.poll());
  EXPECT_TRUE(is_alive());
  EXPECT_TRUE(is_untouched());
}

TEST_F(Hostile, HarmsNoOtherConnection) {
  TestQp& other = endpoint.add_qp({0x102});
  endpoint.to_init(other);
  endpoint.to_rtr(other, {0x301}, Psn(7));
  endpoint.to_rts(other, Psn(7));
  for (const Unwanted& unwanted : unwanted_packets(endpoint, kOurs, Psn(kFirstPsn))) {
    endpoint.receive(unwanted.packet);
  }
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
  EXPECT_EQ(other.qp.state.load(), QpState::kRts);
  wire::Bth header = bth(Opcode::kRcWriteOnly, 7, true);
  header.destination = {0x102};
  endpoint.receive(make_packet(header, 8, reth(kGrantedAt, 8)));
  const auto sent = transmits();
  ASSERT_FALSE(sent.empty());
  EXPECT_THAT(sent, ::testing::Contains(Sent{Opcode::kRcAcknowledge, 7}));
}

}  // namespace
}  // namespace uroce::test
