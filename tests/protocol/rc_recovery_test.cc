// SPDX-License-Identifier: BSD-2-Clause
// Getting over losses (transport/recovery.h): what a responder keeps behind a gap, what a requester
// sends again, and when.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::NakCode;
using wire::Opcode;

// --- The responder -------------------------------------------------------------------------------

class RcStash : public RcTest {
 protected:
  Sent acknowledge(std::uint32_t psn) { return {Opcode::kRcAcknowledge, psn}; }
  bool is_nak() { return !packets.back().view().aeth.syndrome.is_ack(); }
  std::byte first_byte(std::size_t offset) { return endpoint.buffer[offset]; }
  // Its payload begins with 0.
  void write(std::uint32_t psn, std::size_t offset) { write_only(psn, offset, 8); }
  void lose_and_fill() {
    write(101, 8);
    (void)transmits();
    write(100, 0);
    (void)transmits();
  }
};

TEST_F(RcStash, KeepsWhatComesBehindAGap) {
  write(101, 8);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(100)));
  write(102, 16);
  EXPECT_THAT(transmits(), IsEmpty());
  write(100, 0);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(102)));
  EXPECT_FALSE(is_nak());
}

// A NAK of the gap would go back to what was never lost, and take the acknowledgement's place.
TEST_F(RcStash, AGapThatIsFilledBeforeItsNakHasLeftIsNotReported) {
  write(101, 8);
  write(100, 0);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(101)));
  EXPECT_FALSE(is_nak());
  EXPECT_EQ(endpoint.hca.counters().naks_sent, 0U);
  write(102, 8);  // tells nothing of a peer that never heard of a gap
  (void)transmits();
  write(104, 8);  // the next gap is reported
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(103)));
  EXPECT_TRUE(is_nak());
  EXPECT_EQ(endpoint.hca.counters().hints_sent, 0U);
}

TEST_F(RcStash, WritesNothingBeforeItsTurn) {
  std::memset(endpoint.buffer.data(), 0xee, 64);
  write(101, 8);
  EXPECT_EQ(first_byte(8), std::byte{0xee});
  write(100, 0);
  EXPECT_EQ(first_byte(8), std::byte{0});
}

TEST_F(RcStash, OrderOfArrivalDoesNotMatter) {
  for (const std::uint32_t psn : {104U, 101U, 103U, 101U, 102U}) write(psn, 8);
  (void)transmits();
  write(100, 0);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(104)));
  EXPECT_EQ(endpoint.hca.counters().duplicate_requests, 0U);
}

TEST_F(RcStash, TheNextGapIsReportedWhenTheFirstIsFilled) {
  write(101, 8);
  write(103, 8);
  (void)transmits();
  write(100, 0);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(102)));
  EXPECT_TRUE(is_nak());
  write(102, 0);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(103)));
}

// A peer that goes back sends everything behind the gap again (IBTA C9-105).
TEST_F(RcStash, LosesNothingWithAPeerThatGoesBack) {
  write(101, 8);
  write(102, 16);
  (void)transmits();
  std::memset(endpoint.buffer.data(), 0xee, 64);
  for (const std::uint32_t psn : {100U, 101U, 102U, 103U}) write(psn, 8 * (psn - 100));
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(103)));
  for (std::size_t offset = 0; offset < 32; offset += 8)
    EXPECT_EQ(first_byte(offset), std::byte{0});
  EXPECT_EQ(endpoint.hca.counters().duplicate_requests, 2U);
}

TEST_F(RcStash, NothingIsKeptBehindARequestThatWasNotReady) {
  endpoint.receive(make_packet(bth(Opcode::kRcSendOnly, 100, true), 8));
  write(101, 8);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(100)));
  endpoint.post_receive(qp, 1, {endpoint.sge(0, 64)});
  endpoint.receive(make_packet(bth(Opcode::kRcSendOnly, 100, true), 8));
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(100)));
  EXPECT_FALSE(is_nak());
}

TEST_F(RcStash, WhatIsRefusedBehindAGapEndsTheConnectionInItsTurn) {
  endpoint.receive(make_packet(bth(Opcode::kRcWriteMiddle, 101, true), kMtu));
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
  (void)transmits();
  write(100, 0);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(101)));
  EXPECT_EQ(packets.back().view().aeth.syndrome, wire::Syndrome::nak(NakCode::kInvalidRequest));
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

// The endpoint has room for 64.
TEST_F(RcStash, AFullStashDropsAndIsAskedForTheRest) {
  for (std::uint32_t psn = 101; psn < 201; ++psn) write(psn, 8);
  (void)transmits();
  write(100, 0);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(164)));
  for (std::uint32_t psn = 165; psn < 201; ++psn) write(psn, 8);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(200)));
}

TEST_F(RcStash, WhoWaitedLongestGivesItsPacketsUp) {
  TestQp& other = endpoint.add_qp({0x102}, {});
  endpoint.to_init(other);
  endpoint.to_rtr(other, kPeer, Psn(500));
  for (std::uint32_t psn = 101; psn < 165; ++psn) write(psn, 8);
  EXPECT_EQ(qp.qp.responder.stashed.count, 64U);
  wire::Bth early = bth(Opcode::kRcWriteOnly, 501, true);
  early.destination = {0x102};
  endpoint.receive(make_packet(early, 8, reth(0, 8)));
  EXPECT_EQ(other.qp.responder.stashed.count, 1U);
  EXPECT_EQ(qp.qp.responder.stashed.count, 0U);
}

TEST_F(RcStash, ResetForgetsWhatWasKept) {
  write(101, 8);
  EXPECT_EQ(qp.qp.responder.stashed.count, 1U);
  QpAttributes attributes;
  attributes.state = QpState::kReset;
  EXPECT_EQ(endpoint.modify(qp, attributes, qp_attribute::kState), 0);
  EXPECT_EQ(qp.qp.responder.stashed.count, 0U);
}

// --- Hints ---------------------------------------------------------------------------------------

TEST_F(RcStash, APeerThatGoesOnIsToldOfFurtherGaps) {
  lose_and_fill();
  write(103, 8);  // it did not go back
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(102)));
  write(105, 8);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(101 - 2)));  // two behind 102
  EXPECT_FALSE(is_nak());
  write(108, 8);
  EXPECT_EQ(transmits().size(), 2U);  // 106 and 107
}

TEST_F(RcStash, APeerThatGoesBackIsNot) {
  lose_and_fill();
  write(101, 8);  // again
  (void)transmits();
  write(103, 8);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(102)));
  write(105, 8);
  EXPECT_THAT(transmits(), IsEmpty());
}

// --- The requester -------------------------------------------------------------------------------

class RcRecovery : public RcTest {
 protected:
  static constexpr Duration kTimeout = nanoseconds(std::int64_t{4096} << 14);

  Sent middle(std::uint32_t psn) { return {Opcode::kRcWriteMiddle, psn}; }
  Sent last(std::uint32_t psn) { return {Opcode::kRcWriteLast, psn}; }
  const Counters& counters() { return endpoint.hca.counters(); }

  // So that a round trip is known.
  void exchange(Duration round_trip) {
    post_write(0, 8);
    (void)transmits();
    pass(round_trip);
    ack(kFirstPsn);
    complete();
  }
  void prove_that_the_peer_keeps() {
    post_write(0, 3 * kMtu);
    (void)transmits();
    nak(100, NakCode::kPsnSequence);
    (void)transmits();
    ack(102);
    complete();
  }
  // Everything posted has ended well.
  void complete() {
    EXPECT_THAT(transmits(), IsEmpty());
    const auto completions = endpoint.poll_all();
    EXPECT_FALSE(completions.empty());
    for (const Cqe& entry : completions) EXPECT_EQ(entry.status, WcStatus::kSuccess);
  }
};

// Cases P04, P05.
TEST_F(RcRecovery, SendsOnlyWhatIsMissingAndThatOnce) {
  post_write(1, 8 * kMtu);
  EXPECT_EQ(transmits().size(), 8U);
  nak(103, NakCode::kPsnSequence);
  nak(103, NakCode::kPsnSequence);
  EXPECT_THAT(transmits(), ElementsAre(middle(103)));
  EXPECT_TRUE(packets.back().view().bth.ack_request);
  nak(103, NakCode::kPsnSequence);
  EXPECT_THAT(transmits(), IsEmpty());
  ack(107);
  complete();
}

// What others read of a port's counters never falls.
TEST_F(RcRecovery, WhatIsRefusedAndSentLaterCountsOnce) {
  post_write(1, 8 * kMtu);
  (void)transmits();
  nak(103, NakCode::kPsnSequence);
  endpoint.refuses = true;
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_EQ(counters().retransmitted_packets, 1U);
  endpoint.refuses = false;
  EXPECT_THAT(transmits(), ElementsAre(middle(103)));
  EXPECT_EQ(counters().retransmitted_packets, 1U);
}

TEST_F(RcRecovery, NaksOfGapsAreCountedApart) {
  post_write(1, 8 * kMtu);
  (void)transmits();
  nak(103, NakCode::kPsnSequence);
  nak(103, NakCode::kPsnSequence);
  nak(103, NakCode::kRemoteAccess);
  EXPECT_EQ(counters().sequence_naks_received, 2U);
  EXPECT_EQ(counters().naks_received, 3U);
}

TEST_F(RcRecovery, GoesBackForAPeerThatHasDroppedTheRest) {
  post_write(1, 8 * kMtu);
  (void)transmits();
  nak(103, NakCode::kPsnSequence);
  (void)transmits();
  ack(103);
  EXPECT_THAT(transmits(), ElementsAre(middle(104), middle(105), middle(106), last(107)));
}

TEST_F(RcRecovery, GoesBackWhenTheNextIsReportedMissing) {
  post_write(1, 8 * kMtu);
  (void)transmits();
  nak(103, NakCode::kPsnSequence);
  (void)transmits();
  nak(104, NakCode::kPsnSequence);
  EXPECT_THAT(transmits(), ElementsAre(middle(104), middle(105), middle(106), last(107)));
}

TEST_F(RcRecovery, APeerThatNeverKeepsIsNotTriedForEver) {
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::uint32_t psn = kFirstPsn + 3 * i;
    post_write(1, 3 * kMtu);
    (void)transmits();
    nak(psn, NakCode::kPsnSequence);
    EXPECT_EQ(transmits().size(), 1U) << i;
    ack(psn);
    EXPECT_EQ(transmits().size(), 2U) << i;
    ack(psn + 2);
  }
  post_write(1, 3 * kMtu);
  (void)transmits();
  nak(kFirstPsn + 24, NakCode::kPsnSequence);
  EXPECT_EQ(transmits().size(), 3U);
}

TEST_F(RcRecovery, ALongGapFromAPeerThatKeepsIsFilledInDoublingSteps) {
  prove_that_the_peer_keeps();
  post_write(1, 9 * kMtu);
  (void)transmits();
  nak(104, NakCode::kPsnSequence);
  EXPECT_THAT(transmits(), ElementsAre(middle(104)));
  nak(105, NakCode::kPsnSequence);
  EXPECT_THAT(transmits(), ElementsAre(middle(105), middle(106)));
  ack(111);
  complete();
}

TEST_F(RcRecovery, AHintIsFollowedAtOnce) {
  prove_that_the_peer_keeps();
  post_write(1, 9 * kMtu);
  (void)transmits();
  nak(104, NakCode::kPsnSequence);
  (void)transmits();
  ack(103 - 3);  // three behind 104
  EXPECT_THAT(transmits(), ElementsAre(middle(107)));
  ack(103 - 3);
  EXPECT_THAT(transmits(), IsEmpty());
  nak(107, NakCode::kPsnSequence);  // sent when 104 came; 107 is on its way
  EXPECT_THAT(transmits(), IsEmpty());
  ack(111);
  complete();
}

TEST_F(RcRecovery, WhereTheHintsAreManyTheOldestHoleIsFilledAllTheSame) {
  prove_that_the_peer_keeps();
  qp.qp.requester.flight.limit = Flight::kUnlimited;
  post_write(1, 300 * kMtu);
  (void)transmits();
  nak(104, NakCode::kPsnSequence);
  for (std::uint32_t ahead = 2; ahead < 150; ahead += 2) ack(103 - ahead);
  EXPECT_EQ(transmits().size(), Recovery::kHolesMax);
  nak(105, NakCode::kPsnSequence);  // not among the holes
  EXPECT_EQ(transmits().front(), middle(105));
}

TEST_F(RcRecovery, AnOldAcknowledgementIsNoHintWhereNothingIsMissing) {
  prove_that_the_peer_keeps();
  post_write(1, 9 * kMtu);
  (void)transmits();
  ack(100);
  EXPECT_THAT(transmits(), IsEmpty());
}

TEST_F(RcRecovery, AHintBeyondWhatWasSentIsIgnored) {
  prove_that_the_peer_keeps();
  post_write(1, 3 * kMtu);
  (void)transmits();
  nak(103, NakCode::kPsnSequence);
  (void)transmits();
  ack(102 - 3);
  ack(102U - 50'000U);
  EXPECT_THAT(transmits(), IsEmpty());
}

TEST_F(RcRecovery, SilenceIsNoticedByRoundTripsBeforeTheTimeout) {
  exchange(microseconds(100));
  post_write(1, 3 * kMtu);
  (void)transmits();
  pass(microseconds(500));
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteFirst, 101}));
  EXPECT_EQ(counters().early_retransmissions, 1U);
  EXPECT_EQ(counters().timeouts, 0U);
  ack(103);
  complete();
}

// Its answers came at no time at which they could be those to the second ones.
TEST_F(RcRecovery, APeerThatIsLateIsGivenMoreTime) {
  exchange(microseconds(100));
  for (std::uint32_t psn = 101; psn < 105; ++psn) {
    post_write(1, 8);
    (void)transmits();
    for (int i = 0; i < 100; ++i) {  // 5 ms
      pass(microseconds(50));
      (void)transmits();
    }
    ack(psn);
    complete();
  }
  const std::uint64_t in_vain = counters().early_retransmissions;
  post_write(1, 8);
  (void)transmits();
  pass(microseconds(5'000));
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_GT(in_vain, 0U);
  EXPECT_EQ(counters().early_retransmissions, in_vain);
}

// They use up no retry, and the failure comes when the application's time-outs say: 8 of 67 ms.
TEST_F(RcRecovery, AtMostThreeEarlyOnesATimeout) {
  exchange(microseconds(100));
  const Instant start = endpoint.now;
  post_write(1, 8);
  std::size_t sent = transmits().size();
  while (!endpoint.poll()) {
    pass(microseconds(50));
    sent += transmits().size();
    ASSERT_LT(endpoint.now, start + kTimeout * 10);
  }
  EXPECT_GE(endpoint.now, start + kTimeout * 8);
  EXPECT_EQ(counters().timeouts, 8U);
  EXPECT_LE(counters().early_retransmissions, 3 * counters().timeouts);
  EXPECT_EQ(sent, 1 + 7 + counters().early_retransmissions);
}

class RcRecoveryWithoutTimeout : public RcRecovery {
 protected:
  RcRecoveryWithoutTimeout() : RcRecovery() {
    QpAttributes attributes;
    attributes.timeout = 0;
    attributes.state = QpState::kSqd;
    EXPECT_EQ(endpoint.modify(qp, attributes, qp_attribute::kState), 0);
    EXPECT_EQ(endpoint.modify(qp, attributes, qp_attribute::kTimeout), 0);
    attributes.state = QpState::kRts;
    EXPECT_EQ(endpoint.modify(qp, attributes, qp_attribute::kState), 0);
  }
};

// Case P11.
TEST_F(RcRecoveryWithoutTimeout, NothingIsSentEarlyEither) {
  exchange(microseconds(100));
  post_write(1, 8);
  (void)transmits();
  EXPECT_EQ(endpoint.next_deadline(), Instant::never());
  pass(milliseconds(5000));
  EXPECT_THAT(transmits(), IsEmpty());
}

// What was measured is of the path that the connection had.
TEST_F(RcRecovery, NothingIsKnownOfANewPath) {
  exchange(microseconds(100));
  QpAttributes attributes;
  attributes.path = qp.qp.attributes.path;
  attributes.state = QpState::kSqd;
  EXPECT_EQ(endpoint.modify(qp, attributes, qp_attribute::kState), 0);
  EXPECT_EQ(endpoint.modify(qp, attributes, qp_attribute::kAddressVector), 0);
  attributes.state = QpState::kRts;
  EXPECT_EQ(endpoint.modify(qp, attributes, qp_attribute::kState), 0);
  post_write(1, 8);
  (void)transmits();
  EXPECT_EQ(endpoint.hca.next_early_deadline(), Instant::never());
}

TEST_F(RcRecovery, OnAPathThatLosesLittleIsOnItsWay) {
  exchange(microseconds(100));
  post_write(1, 200 * kMtu);
  EXPECT_EQ(transmits().size(), 200U);  // no loss, no limit
  nak(103, NakCode::kPsnSequence);
  ack(300);
  post_write(2, 1000 * kMtu);
  const std::size_t flight = transmits().size();
  EXPECT_LT(flight, 1000U);
  EXPECT_TRUE(packets.back().view().bth.ack_request);
  ack(static_cast<std::uint32_t>(300 + flight));
  EXPECT_GT(transmits().size(), 0U);
}

// A peer that was stopped lets a request time out on a path that loses nothing. Rounds were not
// followed until then, and PSNs come round again.
TEST_F(RcRecovery, WhereNothingIsLostALimitEndsSoonHoweverMuchWasSent) {
  endpoint.set_link({.max_run_packets = 1024, .max_run_bytes = 65'536, .trusted_memory = true});
  Flight& flight = qp.qp.requester.flight;
  flight.round_start = flight.round_end = Psn(kFirstPsn) - 0x90'0000;
  std::uint32_t psn = kFirstPsn;
  post_write(1, 8);
  (void)transmits();
  pass(endpoint.hca.next_deadline() - endpoint.now);
  EXPECT_EQ(transmits().size(), 1U);  // again
  EXPECT_TRUE(flight.is_limited());
  for (unsigned round = 0; round < 100 && flight.is_limited(); ++round) {
    ack(psn++);
    post_write(round, 8);
    (void)transmits();
    EXPECT_TRUE(endpoint.poll());
  }
  EXPECT_FALSE(flight.is_limited());
}

}  // namespace
}  // namespace uroce::test
