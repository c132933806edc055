// SPDX-License-Identifier: BSD-2-Clause
// Unreliable connections, packet by packet (IBTA 9.8.2).
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using wire::Opcode;

class UcTest : public RcTest {
 protected:
  UcTest() : RcTest({.service = Service::kUc}) {}

  void send(Opcode opcode, std::uint32_t psn, std::size_t bytes) {
    endpoint.receive(make_packet(bth(opcode, psn), bytes));
  }
  void post_send(std::uint64_t wr_id, std::uint32_t bytes) {
    endpoint.post_send(qp, {.wr_id = wr_id, .sges = {endpoint.sge(0, bytes)}});
  }
  std::vector<std::uint64_t> completed() {
    std::vector<std::uint64_t> ids;
    (void)endpoint.transmit();
    for (const Cqe& entry : endpoint.poll_all()) {
      EXPECT_EQ(entry.status, WcStatus::kSuccess);
      ids.push_back(entry.wr_id);
    }
    return ids;
  }
};

TEST_F(UcTest, ASendIsFinishedWhenItHasLeft) {
  post_send(7, 2500);
  EXPECT_EQ(transmits(), (std::vector<Sent>{{Opcode::kUcSendFirst, kFirstPsn},
                                            {Opcode::kUcSendMiddle, kFirstPsn + 1},
                                            {Opcode::kUcSendLast, kFirstPsn + 2}}));
  for (const Packet& packet : packets) EXPECT_FALSE(packet.view().bth.ack_request);
  EXPECT_EQ(completed(), std::vector<std::uint64_t>{7});
  EXPECT_EQ(endpoint.next_deadline(), Instant::never());
}

TEST_F(UcTest, AWriteWithImmediateSaysWhere) {
  endpoint.post_send(qp, {.operation = SendOperation::kWriteWithImmediate,
                          .sges = {endpoint.sge(0, 100)},
                          .remote_address = 0x4000,
                          .rkey = {9},
                          .immediate = 0x01020304});
  EXPECT_EQ(transmits(), (std::vector<Sent>{{Opcode::kUcWriteOnlyImmediate, kFirstPsn}}));
  EXPECT_EQ(packets[0].view().reth, (wire::Reth{0x4000, {9}, 100}));
}

TEST_F(UcTest, WhatWasRefusedIsSentLaterAndNotFinishedBefore) {
  post_send(1, 2500);
  post_send(2, 10);
  endpoint.refuses = true;
  EXPECT_TRUE(transmits().empty());
  EXPECT_TRUE(endpoint.poll_all().empty());
  endpoint.refuses = false;
  EXPECT_EQ(transmits().size(), 4U);
  EXPECT_EQ(completed(), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(UcTest, AFaultOfOneRequestFlushesThoseBehindItAndStopsSendingOnly) {
  post_send(1, 10);
  endpoint.post_send(qp, {.wr_id = 2, .sges = {{endpoint.address(0), 10, {0xbad}}}});
  post_send(3, 10);
  EXPECT_EQ(transmits().size(), 1U);
  (void)endpoint.transmit();
  const auto entries = endpoint.poll_all();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].status, WcStatus::kSuccess);
  EXPECT_EQ(entries[1].status, WcStatus::kLocalProtectionError);
  EXPECT_EQ(entries[2].status, WcStatus::kFlushed);
  EXPECT_EQ(qp.qp.state.load(), QpState::kSqe);

  post_send(4, 10);  // in SQE: flushed as well
  (void)endpoint.transmit();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kFlushed);
  endpoint.post_receive(qp, 9, {endpoint.sge(0, 64)});
  send(Opcode::kUcSendOnly, kFirstPsn, 8);
  EXPECT_EQ(completed(), std::vector<std::uint64_t>{9});

  QpAttributes again;
  again.state = QpState::kRts;
  ASSERT_EQ(endpoint.modify(qp, again, qp_attribute::kState), 0);
  post_send(5, 10);
  EXPECT_EQ(transmits(), (std::vector<Sent>{{Opcode::kUcSendOnly, kFirstPsn + 1}}));
  EXPECT_EQ(completed(), std::vector<std::uint64_t>{5});
}

TEST_F(UcTest, ASendArrives) {
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 4096)});
  send(Opcode::kUcSendFirst, kFirstPsn, kMtu);
  send(Opcode::kUcSendLast, kFirstPsn + 1, 10);
  EXPECT_TRUE(transmits().empty());  // no acknowledgement
  const auto entry = endpoint.poll();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->byte_count, kMtu + 10U);
  EXPECT_EQ(entry->source_qpn, kPeer);
}

TEST_F(UcTest, AMessageWithAGapIsDroppedAndItsReceiveServesTheNext) {
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 4096)});
  send(Opcode::kUcSendFirst, kFirstPsn, kMtu);
  send(Opcode::kUcSendLast, kFirstPsn + 2, 10);
  send(Opcode::kUcSendMiddle, kFirstPsn + 3, kMtu);  // of a message whose beginning is lost
  send(Opcode::kUcSendOnly, kFirstPsn + 9, 20);
  const auto ids = completed();
  EXPECT_EQ(ids, std::vector<std::uint64_t>{3});
  EXPECT_EQ(endpoint.hca.counters().unreliable_dropped, 1U);
  EXPECT_EQ(qp.qp.responder.expected_psn, Psn(kFirstPsn + 10));
}

TEST_F(UcTest, ANewMessageEndsTheOneAtHand) {
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 4096)});
  send(Opcode::kUcSendFirst, kFirstPsn, kMtu);
  send(Opcode::kUcSendOnly, kFirstPsn + 1, 20);
  (void)endpoint.transmit();
  const auto entry = endpoint.poll();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->byte_count, 20U);
}

// P36: a packet of another operation ends the message at hand, whichever of the two it is.
TEST_F(UcTest, APacketThatDoesNotFollowEndsTheMessageUpToTheNextBeginning) {
  endpoint.post_receive(qp, 3, {endpoint.sge(8 * kMtu, kMtu)});
  std::memset(endpoint.buffer.data(), 0xee, 8 * kMtu);
  std::uint32_t psn = kFirstPsn;
  endpoint.receive(make_packet(bth(Opcode::kUcWriteFirst, psn++), kMtu, reth(0, 3 * kMtu)));
  send(Opcode::kUcSendMiddle, psn++, kMtu);
  send(Opcode::kUcWriteMiddle, psn++, kMtu);  // of a message that is over
  send(Opcode::kUcWriteLast, psn++, kMtu);
  send(Opcode::kUcSendLast, psn++, 8);
  EXPECT_EQ(endpoint.buffer[0], std::byte{0});
  EXPECT_EQ(endpoint.buffer[kMtu], std::byte{0xee});
  EXPECT_TRUE(completed().empty());
  send(Opcode::kUcSendFirst, psn++, kMtu);
  send(Opcode::kUcWriteLast, psn++, 8);
  send(Opcode::kUcSendLast, psn++, 8);
  EXPECT_TRUE(completed().empty());
  send(Opcode::kUcSendOnly, psn++, 20);
  EXPECT_EQ(completed(), std::vector<std::uint64_t>{3});
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
}

TEST_F(UcTest, WithoutAReceiveAMessageIsLost) {
  send(Opcode::kUcSendFirst, kFirstPsn, kMtu);
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 4096)});
  send(Opcode::kUcSendLast, kFirstPsn + 1, 5);  // its beginning was not taken
  EXPECT_TRUE(completed().empty());
  send(Opcode::kUcSendOnly, kFirstPsn + 2, 5);
  EXPECT_EQ(completed(), std::vector<std::uint64_t>{3});
}

TEST_F(UcTest, AWriteWithAWrongKeyIsLostAndTheConnectionLives) {
  std::fill(endpoint.buffer.begin(), endpoint.buffer.end(), std::byte{0x55});
  wire::Reth wrong = reth(0, 8);
  wrong.rkey = {0xbad};
  endpoint.receive(make_packet(bth(Opcode::kUcWriteOnly, kFirstPsn), 8, wrong));
  EXPECT_EQ(endpoint.buffer[1], std::byte{0x55});
  endpoint.receive(make_packet(bth(Opcode::kUcWriteOnly, kFirstPsn + 1), 8, reth(0, 8)));
  EXPECT_EQ(endpoint.buffer[1], std::byte{1});
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
}

TEST_F(UcTest, ATooLongSendIsTheReceiversFault) {
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 4)});
  send(Opcode::kUcSendOnly, kFirstPsn, 5);
  (void)endpoint.transmit();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalLengthError);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

TEST_F(UcTest, APacketOfAnotherServiceIsNotForIt) {
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 64)});
  send(Opcode::kRcSendOnly, kFirstPsn, 5);
  EXPECT_EQ(endpoint.hca.counters().rx_wrong_service, 1U);
}

TEST_F(UcTest, InSqdWhatWasBegunIsFinished) {
  post_send(1, 10);
  QpAttributes drain;
  drain.state = QpState::kSqd;
  drain.sqd_notify = true;
  endpoint.refuses = true;
  (void)endpoint.transmit();
  ASSERT_EQ(endpoint.modify(qp, drain, qp_attribute::kState | qp_attribute::kEnableSqdNotify), 0);
  post_send(2, 10);
  EXPECT_FALSE(endpoint.event());
  endpoint.refuses = false;
  EXPECT_EQ(transmits().size(), 1U);
  EXPECT_EQ(completed(), std::vector<std::uint64_t>{1});
  EXPECT_EQ(endpoint.event()->type, EventType::kSqDrained);
}

}  // namespace
}  // namespace uroce::test
