// SPDX-License-Identifier: BSD-2-Clause
// READ responses behind one that was lost (transport/read_gaps.h).
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Opcode;

class RcReadGaps : public RcTest {
 protected:
  explicit RcReadGaps(QpOptions options = {}) : RcTest(options) {}

  static constexpr std::uint64_t kRemote = 0x4000;

  // To the buffer's beginning plus `offset`.
  void post_read(std::uint32_t count, std::size_t offset = 0) {
    endpoint.post_send(qp, {.operation = SendOperation::kRead,
                            .wr_id = offset,
                            .sges = {endpoint.sge(offset, count * kMtu)},
                            .remote_address = kRemote + offset,
                            .rkey = {7}});
  }
  // Every byte of packet `psn` is `psn`.
  void response(std::uint32_t psn, Opcode opcode = Opcode::kRcReadResponseMiddle) {
    const wire::Aeth ack{wire::Syndrome::ack(), {1}};
    Packet packet = wire::opcode_info(opcode).aeth ? make_packet(bth(opcode, psn), kMtu, ack)
                                                   : make_packet(bth(opcode, psn), kMtu);
    std::fill(packet.bytes.end() - kMtu, packet.bytes.end(), std::byte(psn));
    endpoint.now = endpoint.now + microseconds(1);
    endpoint.receive(packet);
  }
  void responses(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t psn = from; psn <= to; ++psn) response(psn);
  }
  // What was posted leaves; 101 of its answers does not come, and 102 is the last so far.
  void leave_a_hole() {
    (void)transmits();
    first(100);
    response(102);
  }
  // A READ of packets 100 to 103, of which 103 has not come yet.
  void read_with_a_hole() {
    post_read(4);
    leave_a_hole();
  }
  void post_add() {
    endpoint.post_send(qp, {.operation = SendOperation::kFetchAdd,
                            .sges = {endpoint.sge(16 * kMtu, 8)},
                            .remote_address = kRemote,
                            .rkey = {7},
                            .compare_add = 1});
  }
  void added(std::uint32_t psn) {
    endpoint.receive(make_packet(bth(Opcode::kRcAtomicAcknowledge, psn), 0,
                                 wire::Aeth{wire::Syndrome::ack(), {2}}, wire::AtomicAckEth{5}));
  }
  void first(std::uint32_t psn) { response(psn, Opcode::kRcReadResponseFirst); }
  void last(std::uint32_t psn) { response(psn, Opcode::kRcReadResponseLast); }
  void only(std::uint32_t psn) { response(psn, Opcode::kRcReadResponseOnly); }
  static Sent asks(std::uint32_t psn) { return {Opcode::kRcReadRequest, psn}; }

  std::uint32_t packets_asked(std::size_t index = 0) {
    return packets[index].view().reth.dma_bytes / kMtu;
  }
  // How many have succeeded; all must have.
  std::size_t completed() {
    (void)endpoint.transmit();
    const auto done = endpoint.poll_all();
    for (const Cqe& entry : done) EXPECT_EQ(entry.status, WcStatus::kSuccess);
    return done.size();
  }
  void expect_read(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(endpoint.buffer[i * kMtu], std::byte(kFirstPsn + i)) << i;
      EXPECT_EQ(endpoint.buffer[(i + 1) * kMtu - 1], std::byte(kFirstPsn + i)) << i;
    }
  }
};

// IBTA C9-110: a READ may be asked for again for a part of what it was.
TEST_F(RcReadGaps, OnlyTheHoleIsAskedForAgain) {
  post_read(8);
  (void)transmits();
  first(100);
  responses(103, 104);
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  EXPECT_EQ(packets_asked(), 2U);
  EXPECT_EQ(packets[0].view().reth.virtual_address, kRemote + kMtu);
  responses(105, 106);
  last(107);
  EXPECT_THAT(transmits(), IsEmpty());
  first(101);
  EXPECT_EQ(completed(), 0U);
  last(102);
  EXPECT_EQ(completed(), 1U);
  expect_read(8);
}

TEST_F(RcReadGaps, TheEndOfTheHoleMayComeAsTheEndOfTheRead) {
  post_read(4);  // as Linux's rxe answers: MIDDLE and LAST
  leave_a_hole();
  last(103);
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  last(101);
  EXPECT_EQ(completed(), 1U);
  expect_read(4);
}

TEST_F(RcReadGaps, GapsMayReachOverSeveralReads) {
  post_read(4);
  post_read(4, 4 * kMtu);
  (void)transmits();
  first(100);
  responses(105, 106);  // 101 to 104 are lost
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  EXPECT_EQ(packets_asked(), 3U);
  last(107);
  first(101);
  response(102);
  last(103);
  EXPECT_EQ(completed(), 1U);
  EXPECT_EQ(packets_asked(), 3U);
  only(104);
  EXPECT_EQ(completed(), 1U);
  expect_read(8);
}

TEST_F(RcReadGaps, WhatCameBehindAGapIsNotTakenTwice) {
  read_with_a_hole();
  (void)transmits();
  std::memset(endpoint.buffer.data() + 2 * kMtu, 0xee, kMtu);
  response(102);
  EXPECT_EQ(endpoint.buffer[2 * kMtu], std::byte{0xee});
}

// Linux's rxe forgets where a READ began that is asked for in parts.
TEST_F(RcReadGaps, APeerThatIsNotKnownIsAskedForOneHoleAfterTheOther) {
  post_read(8);
  leave_a_hole();
  response(104);
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  last(101);  // an answer that does not begin
  EXPECT_THAT(transmits(), ElementsAre(asks(103)));
}

TEST_F(RcReadGaps, APeerThatBeginsInTheMiddleIsAskedForAllHoles) {
  post_read(12);
  leave_a_hole();
  (void)transmits();
  only(101);
  response(104);
  response(106);
  EXPECT_THAT(transmits(), ElementsAre(asks(103), asks(105)));
  only(105);  // so 103 was lost on the way, or its answer was
  EXPECT_THAT(transmits(), ElementsAre(asks(103)));
}

TEST_F(RcReadGaps, WhatWasAskedForLaterTellsThatAHoleIsStillOne) {
  read_with_a_hole();
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  last(103);
  post_read(4, 4 * kMtu);
  EXPECT_THAT(transmits(), ElementsAre(asks(104)));
  first(104);
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
}

TEST_F(RcReadGaps, SilenceIsAnsweredByTheOldestHole) {
  read_with_a_hole();
  (void)transmits();
  pass(milliseconds(1));
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  EXPECT_EQ(packets_asked(), 1U);
}

TEST_F(RcReadGaps, SilenceIsAnsweredAlsoWhereTheHoleHadNotLeftWhenItsTimeCame) {
  read_with_a_hole();
  pass(milliseconds(1));
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  pass(milliseconds(1));
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
}

TEST_F(RcReadGaps, ThreeTimesSilenceIsAnsweredAndNoMore) {
  post_read(16);
  leave_a_hole();
  (void)transmits();
  only(101);  // from its middle: a peer that answers parts
  for (const std::uint32_t psn : {104U, 106U, 108U, 110U}) response(psn);
  EXPECT_THAT(transmits(), ElementsAre(asks(103), asks(105), asks(107), asks(109)));
  only(109);
  EXPECT_THAT(transmits(), ElementsAre(asks(103), asks(105), asks(107)));
  std::size_t asked = 0;
  for (int i = 0; i < 20; ++i) {
    pass(milliseconds(1));
    asked += transmits().size();
  }
  EXPECT_EQ(asked, 3U);
}

// The ACK timer: the standard's retry, of everything.
TEST_F(RcReadGaps, ATimeOutAsksForEverythingFromTheGapOn) {
  read_with_a_hole();
  (void)transmits();
  pass(milliseconds(80));
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  EXPECT_EQ(packets_asked(), 3U);
  only(101);  // the late answer to the part
  response(102);
  last(103);
  EXPECT_EQ(completed(), 1U);
}

TEST_F(RcReadGaps, AnAcknowledgementBehindTheGapIsHeardLater) {
  post_read(4);
  post_write(9, 8);
  leave_a_hole();
  last(103);
  ack(104);
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  only(101);
  EXPECT_EQ(completed(), 2U);
  EXPECT_EQ(endpoint.hca.counters().rewinds, 0U);
}

TEST_F(RcReadGaps, ANakBehindTheGapIsHeardLater) {
  post_read(4);
  post_write(9, 8);
  leave_a_hole();
  last(103);
  nak(104, wire::NakCode::kPsnSequence);
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  only(101);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, 104}));
}

TEST_F(RcReadGaps, AnAtomicBehindTheGapIsAskedForAnewWhenTheReadIsComplete) {
  post_read(4);
  post_add();
  leave_a_hole();
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  last(103);
  added(104);
  EXPECT_THAT(transmits(), IsEmpty());
  only(101);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcFetchAdd, 104}));
  added(104);
  EXPECT_EQ(completed(), 2U);
}

TEST_F(RcReadGaps, AReadBehindAnAtomicBehindTheGapIsAskedForAnewWhenTheFirstIsComplete) {
  post_read(4);
  post_add();
  post_read(4, 4 * kMtu);
  leave_a_hole();
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  last(103);
  first(105);
  EXPECT_THAT(transmits(), IsEmpty());
  only(101);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcFetchAdd, 104}, asks(105)));
}

// The peer will say so once more.
TEST_F(RcReadGaps, ANakForWantOfAReceiveBehindTheGapIsHeardLater) {
  post_read(4);
  post_write(9, 8);
  leave_a_hole();
  last(103);
  rnr(104, 1);
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  only(101);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, 104}));
}

// Or a path that loses the first response of each try would lose the READ.
TEST_F(RcReadGaps, WhatComesBehindAGapIsKeptAfterGoingBackToo) {
  post_read(4);
  (void)transmits();
  pass(milliseconds(80));
  EXPECT_THAT(transmits(), ElementsAre(asks(100)));
  responses(101, 102);
  last(103);
  ASSERT_THAT(transmits(), ElementsAre(asks(100)));
  EXPECT_EQ(packets_asked(), 1U);
  only(100);
  EXPECT_EQ(completed(), 1U);
}

TEST_F(RcReadGaps, ShortAnswersSpoilTheRequestInItsTurn) {
  post_read(4);
  post_read(4, 4 * kMtu);
  leave_a_hole();
  last(103);
  endpoint.receive(make_packet(bth(Opcode::kRcReadResponseFirst, 104), 8,
                               wire::Aeth{wire::Syndrome::ack(), {1}}));
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
  (void)transmits();
  endpoint.receive(make_packet(bth(Opcode::kRcReadResponseOnly, 101), 8,
                               wire::Aeth{wire::Syndrome::ack(), {1}}));
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kBadResponse);
}

class RcReadGapsWithoutTimer : public RcReadGaps {
 protected:
  RcReadGapsWithoutTimer() : RcReadGaps({.timeout = 0}) {}
};

TEST_F(RcReadGapsWithoutTimer, MoreGapsThanThereAreHolesForAreSeenLater) {
  constexpr std::uint32_t kPackets = 200;
  post_read(kPackets);
  (void)transmits();
  first(100);
  for (std::uint32_t psn = 102; psn < 100 + kPackets - 1; psn += 2) response(psn);
  last(100 + kPackets - 1);
  std::vector<Sent> asked = transmits();
  std::size_t done = 0;
  for (unsigned rounds = 0; done == 0 && rounds < 2 * kPackets; ++rounds) {
    for (std::size_t k = 0; k < asked.size(); ++k) {
      const std::uint32_t end = asked[k].psn + packets_asked(k);
      responses(asked[k].psn, end - 2);
      last(end - 1);
    }
    asked = transmits();
    done = endpoint.poll_all().size();
  }
  EXPECT_EQ(done, 1U);
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    EXPECT_EQ(endpoint.buffer[i * kMtu], std::byte(kFirstPsn + i)) << i;
  }
  EXPECT_EQ(qp.qp.requester.recovery.hole_count, 0U);
}

class RcReadGapsOfTwoReads : public RcReadGaps {
 protected:
  RcReadGapsOfTwoReads() : RcReadGaps({.max_read_atomic = 2}) {}
};

// IBTA 9.4.4 and C9-110: each part is a READ for the peer, which has room for so many.
TEST_F(RcReadGapsOfTwoReads, NoMoreHolesAreAskedForAtATime) {
  post_read(12);
  leave_a_hole();
  (void)transmits();
  only(101);
  for (const std::uint32_t psn : {104U, 106U, 108U, 110U}) response(psn);
  EXPECT_THAT(transmits(), ElementsAre(asks(103), asks(105)));
  only(103);
  EXPECT_THAT(transmits(), ElementsAre(asks(107)));
  only(107);  // so 105 was lost on the way: it is one of the two still
  EXPECT_THAT(transmits(), ElementsAre(asks(105), asks(109)));
}

class RcReadGapsWithoutRetries : public RcReadGaps {
 protected:
  RcReadGapsWithoutRetries() : RcReadGaps({.retry_count = 0}) {}
};

// An implied NAK uses up a retry, as any other (IBTA 9.7.5.1.4).
TEST_F(RcReadGapsWithoutRetries, AGapIsTheEnd) {
  read_with_a_hole();
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kRetryExceeded);
}

class RcReadGapsOverMemory : public RcReadGaps {
 protected:
  RcReadGapsOverMemory() { endpoint.set_link(memory_link()); }
};

// Nothing is lost there; it is the peer that is odd.
TEST_F(RcReadGapsOverMemory, EverythingIsAskedForAgain) {
  read_with_a_hole();
  EXPECT_THAT(transmits(), ElementsAre(asks(101)));
  EXPECT_EQ(packets_asked(), 3U);
}

}  // namespace
}  // namespace uroce::test
