// SPDX-License-Identifier: BSD-2-Clause
// The requester's timer and counters against a scripted responder.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::NakCode;
using wire::Opcode;

QpOptions retry_options(std::uint8_t timeout, std::uint8_t retries, std::uint8_t rnr_retry) {
  QpOptions options;
  options.timeout = timeout;
  options.retry_count = retries;
  options.rnr_retry = rnr_retry;
  return options;
}

class RcRetry : public RcTest {
 protected:
  RcRetry() : RcTest(retry_options(8, 3, 3)) {}  // 1.048576 ms
  static constexpr Duration kTimeout = nanoseconds(4096 << 8);
};

TEST_F(RcRetry, TimeoutsRepeatAndThenFail) {
  post_write(1, 8);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, 100}));
  for (int i = 0; i < 3; ++i) {
    pass(kTimeout);
    EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, 100}));
  }
  pass(kTimeout);
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kRetryExceeded);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

// Or a path that loses packets at a regular distance may lose the same one of each try.
TEST_F(RcRetry, WhenGoingBackWasOfNoUseTheOldestPacketGoesAlone) {
  const Sent first{Opcode::kRcWriteFirst, 100}, last{Opcode::kRcWriteLast, 101};
  post_write(1, 2048);
  (void)transmits();
  pass(kTimeout);
  EXPECT_THAT(transmits(), ElementsAre(first, last));
  pass(kTimeout);
  EXPECT_THAT(transmits(), ElementsAre(first));
  EXPECT_TRUE(packets[0].view().bth.ack_request);
  ack(100);
  EXPECT_THAT(transmits(), ElementsAre(last));
}

TEST_F(RcRetry, ARequestWithAnAnswerGoesAloneToo) {
  for (int i = 0; i < 2; ++i) {
    endpoint.post_send(qp, {.operation = SendOperation::kRead,
                            .sges = {endpoint.sge(0, 8)},
                            .remote_address = 0x1000,
                            .rkey = {7}});
  }
  const Sent first{Opcode::kRcReadRequest, 100}, second{Opcode::kRcReadRequest, 101};
  (void)transmits();
  pass(kTimeout);
  EXPECT_THAT(transmits(), ElementsAre(first, second));
  pass(kTimeout);
  EXPECT_THAT(transmits(), ElementsAre(first));
  endpoint.receive(make_packet(bth(Opcode::kRcReadResponseOnly, 100), 8,
                               wire::Aeth{wire::Syndrome::ack(), {1}}));
  EXPECT_THAT(transmits(), ElementsAre(second));
}

TEST_F(RcRetry, ProgressGivesTheRetriesBack) {
  post_write(1, 2048);
  (void)transmits();
  for (int i = 0; i < 3; ++i) {
    pass(kTimeout);
    (void)transmits();
  }
  ack(100);
  for (int i = 0; i < 3; ++i) {
    pass(kTimeout);
    EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteLast, 101}));
  }
}

// Case P09.
TEST_F(RcRetry, TimerStopsWhenAllIsAcknowledged) {
  post_write(1, 8);
  (void)transmits();
  ack(100);
  pass(kTimeout * 100);
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_EQ(endpoint.hca.counters().timeouts, 0U);
  EXPECT_EQ(endpoint.hca.next_deadline(), Instant::never());
}

// A ring that nobody empties: the peer was stopped.
TEST_F(RcRetry, APeerWhoseLinkTakesNothingIsGivenUp) {
  endpoint.refuses = true;
  const Instant start = endpoint.now;
  post_write(1, 8);
  (void)transmits();
  while (endpoint.cq.pending() == 0 && endpoint.now < start + kTimeout * 20) {
    pass(milliseconds(1));
    (void)transmits();
  }
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kRetryExceeded);
  EXPECT_EQ(endpoint.hca.counters().timeouts, 4U);
}

// IBTA 9.7.6.1.3: what a packet waited for a window before it was sent is not the peer's time.
TEST_F(RcRetry, TimerRunsFromWhenThePacketIsSent) {
  endpoint.set_link(windowed_link());
  TestQp& other = endpoint.add_qp({0x102}, {});
  endpoint.to_init(other);
  endpoint.to_rtr(other, kPeer, Psn(500));
  endpoint.to_rts(other, Psn(500));
  const auto post_read = [this](TestQp& who, std::uint32_t bytes) {
    endpoint.post_send(who, {.operation = SendOperation::kRead,
                             .sges = {endpoint.sge(0, bytes)},
                             .remote_address = 0x4000,
                             .rkey = {7}});
  };
  post_read(qp, 1024);
  EXPECT_EQ(transmits().size(), 1U);
  post_read(other, 65'536);  // all of the window for answers
  (void)transmits();
  post_read(qp, 10'240);
  endpoint.receive(make_packet(bth(Opcode::kRcReadResponseOnly, 100), 1024,
                               wire::Aeth{wire::Syndrome::ack(), {1}}));
  EXPECT_THAT(transmits(), IsEmpty());
  pass(nanoseconds(kTimeout.ns - 1));
  QpAttributes attributes;
  attributes.state = QpState::kErr;
  EXPECT_EQ(endpoint.modify(other, attributes, qp_attribute::kState), 0);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadRequest, 101}));
  pass(nanoseconds(kTimeout.ns - 1));
  EXPECT_EQ(endpoint.hca.counters().timeouts, 0U);
  pass(nanoseconds(1));
  EXPECT_EQ(endpoint.hca.counters().timeouts, 1U);
}

TEST_F(RcRetry, LateAcknowledgementAfterATimeoutIsTaken) {
  post_write(1, 8);
  post_write(2, 8);
  (void)transmits();
  pass(kTimeout);
  ack(101);
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_EQ(endpoint.poll_all().size(), 2U);
}

// Case P06: exactly N + 1 requests.
TEST_F(RcRetry, RnrRetriesAreCounted) {
  endpoint.post_send(qp, {.sges = {endpoint.sge(0, 8)}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcSendOnly, 100}));
    rnr(100, 1);
    pass(microseconds(10));
  }
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcSendOnly, 100}));
  rnr(100, 1);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kRnrRetryExceeded);
}

// Case P07: the responder's time is waited for, whatever the ACK timer is.
TEST_F(RcRetry, RnrWaitIsNotCutShortByTheAckTimer) {
  endpoint.post_send(qp, {.sges = {endpoint.sge(0, 8)}});
  (void)transmits();
  rnr(100, 31);  // 491.52 ms
  pass(microseconds(491'519));
  EXPECT_THAT(transmits(), IsEmpty());
  pass(microseconds(1));
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcSendOnly, 100}));
}

struct NakCase {
  NakCode code;
  WcStatus status;
};
class RcFatalNak : public RcTest, public ::testing::WithParamInterface<NakCase> {};

TEST_P(RcFatalNak, EndsTheRequestAndFlushesTheRest) {
  for (std::uint64_t i = 1; i <= 4; ++i) post_write(i, 8);
  (void)transmits();
  nak(101, GetParam().code);
  (void)transmits();
  const auto all = endpoint.poll_all();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].status, WcStatus::kSuccess);
  EXPECT_EQ(all[1].status, GetParam().status);
  EXPECT_EQ(all[2].status, WcStatus::kFlushed);
  EXPECT_EQ(all[3].status, WcStatus::kFlushed);
}

INSTANTIATE_TEST_SUITE_P(
    All, RcFatalNak,
    ::testing::Values(NakCase{NakCode::kInvalidRequest, WcStatus::kRemoteInvalidRequest},
                      NakCase{NakCode::kRemoteAccess, WcStatus::kRemoteAccessError},
                      NakCase{NakCode::kRemoteOperational, WcStatus::kRemoteOperationError}));

class RcNoTimeout : public RcTest {
 protected:
  RcNoTimeout() : RcTest(retry_options(0, 7, 7)) {}
};

// Case P11.
TEST_F(RcNoTimeout, WaitsForEver) {
  post_write(1, 8);
  (void)transmits();
  EXPECT_EQ(endpoint.hca.next_deadline(), Instant::never());
  pass(milliseconds(100'000));
  EXPECT_THAT(transmits(), IsEmpty());
}

// Case P06: 7 is without end.
TEST_F(RcNoTimeout, RnrRetrySevenIsForEver) {
  endpoint.post_send(qp, {.sges = {endpoint.sge(0, 8)}});
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcSendOnly, 100}));
    rnr(100, 1);
    pass(microseconds(10));
  }
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
}

// As Linux's rxe does: it reports the packets behind a request that it was not ready for as a gap,
// some when the wait is already over.
TEST_F(RcNoTimeout, GapsReportedBehindAnRnrNakUseUpNoRetries) {
  endpoint.post_send(qp, {.sges = {endpoint.sge(0, 2048)}});
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(transmits(), Contains(Sent{Opcode::kRcSendFirst, 100}));
    rnr(100, 1);
    nak(100, NakCode::kPsnSequence);
    EXPECT_THAT(transmits(), IsEmpty());
    pass(microseconds(10));
    EXPECT_THAT(transmits(), Contains(Sent{Opcode::kRcSendLast, 101}));
    nak(100, NakCode::kPsnSequence);
  }
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
}

TEST_F(RcRetry, LocalFaultWaitsForEarlierRequests) {
  post_write(1, 8);
  endpoint.post_send(qp, {.operation = SendOperation::kWrite,
                          .wr_id = 2,
                          .sges = {{endpoint.address(0), 8, {0xbad00}}},
                          .remote_address = 0x1000});
  post_write(3, 8);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, 100}));
  EXPECT_FALSE(endpoint.poll());
  ack(100);
  (void)transmits();
  const auto all = endpoint.poll_all();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].status, WcStatus::kSuccess);
  EXPECT_EQ(all[1].status, WcStatus::kLocalProtectionError);
  EXPECT_EQ(all[2].status, WcStatus::kFlushed);
}

class RcWithoutTimer : public RcTest {
 protected:
  RcWithoutTimer() : RcTest(retry_options(0, 0, 0)) { qp.qp.signal_all = false; }

  void post_unsignaled_write() {
    endpoint.post_send(qp, {.operation = SendOperation::kWrite,
                            .sges = {endpoint.sge(0, 8)},
                            .remote_address = 0x1000,
                            .rkey = {7},
                            .flags = 0});
  }
  void post_faulty_write(std::uint64_t wr_id) {
    endpoint.post_send(qp, {.operation = SendOperation::kWrite,
                            .wr_id = wr_id,
                            .sges = {{endpoint.address(0), 8, {0xbad00}}},
                            .remote_address = 0x1000});
  }
  // And nothing else.
  void expect_fault(std::uint64_t wr_id) {
    (void)transmits();
    const auto all = endpoint.poll_all();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].wr_id, wr_id);
    EXPECT_EQ(all[0].status, WcStatus::kLocalProtectionError);
  }
  int drain() {
    QpAttributes attributes;
    attributes.state = QpState::kSqd;
    attributes.sqd_notify = true;
    return endpoint.modify(qp, attributes, qp_attribute::kState | qp_attribute::kEnableSqdNotify);
  }
};

// It would wait for an acknowledgement that nobody asked for.
TEST_F(RcWithoutTimer, ALocalFaultHasWhatIsBeforeItAcknowledged) {
  post_unsignaled_write();
  post_unsignaled_write();
  post_faulty_write(3);
  EXPECT_EQ(transmits().size(), 2U);
  EXPECT_EQ(endpoint.hca.next_deadline(), Instant{});
  pass({});
  EXPECT_THAT(transmits(),
              ElementsAre(Sent{Opcode::kRcWriteOnly, 100}, Sent{Opcode::kRcWriteOnly, 101}));
  EXPECT_TRUE(packets.back().view().bth.ack_request);
  EXPECT_EQ(endpoint.hca.next_deadline(), Instant::never());
  ack(101);
  expect_fault(3);
}

TEST_F(RcWithoutTimer, WhatWasRefusedBeforeALocalFaultIsNoTimeOut) {
  post_unsignaled_write();
  post_faulty_write(2);
  endpoint.refuses = true;
  (void)transmits();
  endpoint.refuses = false;
  pass({});
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, 100}));
  EXPECT_TRUE(packets.back().view().bth.ack_request);
  EXPECT_EQ(endpoint.hca.counters().timeouts, 0U);
  ack(100);
  expect_fault(2);
}

TEST_F(RcWithoutTimer, ALocalFaultBehindAnAnswerWaitsForThat) {
  post_unsignaled_write();
  endpoint.post_send(qp, {.operation = SendOperation::kFetchAdd,
                          .wr_id = 2,
                          .sges = {endpoint.sge(0, 8)},
                          .remote_address = 0x1000,
                          .rkey = {7},
                          .compare_add = 1});
  post_faulty_write(3);
  EXPECT_THAT(transmits(),
              ElementsAre(Sent{Opcode::kRcWriteOnly, 100}, Sent{Opcode::kRcFetchAdd, 101}));
  EXPECT_EQ(endpoint.hca.next_deadline(), Instant::never());
}

// IBTA 10.3.1.5: what was begun is finished; what was not begun asks for nothing.
TEST_F(RcWithoutTimer, TheLastRequestOfADrainAsksToo) {
  endpoint.post_send(qp, {.operation = SendOperation::kWrite,
                          .sges = {endpoint.sge(0, 2 * kMtu)},
                          .remote_address = 0x1000,
                          .rkey = {7},
                          .flags = 0});
  endpoint.refuses = true;  // taken up, and not gone yet
  (void)transmits();
  endpoint.refuses = false;
  post_unsignaled_write();
  ASSERT_EQ(drain(), 0);
  EXPECT_EQ(transmits().size(), 2U);
  EXPECT_TRUE(packets.back().view().bth.ack_request);
  ack(101);
  (void)transmits();
  EXPECT_EQ(endpoint.event()->type, EventType::kSqDrained);
}

TEST_F(RcWithoutTimer, ADrainAsksAlsoForWhatWasSentBefore) {
  for (std::size_t i = 0; i < 2 * TxBurst::kFrames; ++i) post_unsignaled_write();
  TxBurst burst;
  (void)endpoint.hca.poll_transmit(endpoint.now, 0, burst);  // one burst of them
  const std::size_t sent = burst.frames().size();
  ASSERT_LT(sent, 2 * TxBurst::kFrames);
  ASSERT_EQ(drain(), 0);
  ack(kFirstPsn);  // an answer to something older does not put it off
  pass({});
  EXPECT_EQ(transmits().size(), sent - 1);
  EXPECT_TRUE(packets.back().view().bth.ack_request);
  ack(static_cast<std::uint32_t>(kFirstPsn + sent - 1));
  (void)transmits();
  EXPECT_EQ(endpoint.event()->type, EventType::kSqDrained);
}

}  // namespace
}  // namespace uroce::test
