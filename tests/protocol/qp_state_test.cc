// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "protocol/fixture.h"
#include "transport/qp_state.h"

namespace uroce::test {
namespace {

using namespace transport;
using namespace transport::qp_attribute;

class QpStateTest : public RcTest {
 protected:
  int go(QpState state, std::uint32_t mask = 0, QpAttributes attributes = {}) {
    attributes.state = state;
    return endpoint.modify(qp, attributes, kState | mask);
  }
};

// IBTA 11.2.5.2, for RC: exactly these changes exist. RESET to ERR is none, as in Linux.
TEST(QpStateTable, ChangesOfState) {
  const bool expected[7][7] = {//            RESET  INIT   RTR    RTS    SQD    SQE    ERR
                               /* RESET */ {true, true, false, false, false, false, false},
                               /* INIT  */ {true, true, true, false, false, false, true},
                               /* RTR   */ {true, false, false, true, false, false, true},
                               /* RTS   */ {true, false, false, true, true, false, true},
                               /* SQD   */ {true, false, false, true, true, false, true},
                               /* SQE   */ {true, false, false, false, false, false, true},
                               /* ERR   */ {true, false, false, false, false, false, true}};
  for (int from = 0; from < 7; ++from) {
    for (int to = 0; to < 7; ++to) {
      EXPECT_EQ(state_change(Service::kRc, static_cast<QpState>(from), static_cast<QpState>(to))
                    .is_allowed,
                expected[from][to])
          << from << " to " << to;
    }
  }
}

TEST(QpStateTable, EachRequiredAttributeIsRequired) {
  const std::uint32_t required = state_change(Service::kRc, QpState::kInit, QpState::kRtr).required;
  QpAttributes attributes;
  attributes.state = QpState::kRtr;
  EXPECT_EQ(check_modify(Service::kRc, QpState::kInit, attributes, kState | required), 0);
  for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
    if ((required & bit) == 0) continue;
    EXPECT_EQ(check_modify(Service::kRc, QpState::kInit, attributes, kState | (required & ~bit)),
              EINVAL);
  }
  EXPECT_EQ(check_modify(Service::kRc, QpState::kInit, attributes, kState | required | kSendPsn),
            EINVAL);
}

TEST(QpStateTable, ValuesAreChecked) {
  QpAttributes attributes;
  attributes.timeout = 32;
  EXPECT_EQ(check_modify(Service::kRc, QpState::kSqd, attributes, kTimeout), EINVAL);
  attributes.timeout = 31;
  EXPECT_EQ(check_modify(Service::kRc, QpState::kSqd, attributes, kTimeout), 0);
  attributes.current_state = QpState::kRts;
  EXPECT_EQ(check_modify(Service::kRc, QpState::kSqd, attributes, kCurrentState), EINVAL);
}

TEST_F(QpStateTest, WrongModifyChangesNothing) {
  QpAttributes attributes;
  attributes.min_rnr_timer = 31;
  EXPECT_EQ(endpoint.modify(qp, attributes, kMinRnrTimer | kSendPsn), EINVAL);
  EXPECT_EQ(endpoint.hca.query_qp(qp.qp).min_rnr_timer, 12);
  EXPECT_EQ(endpoint.hca.query_qp(qp.qp).state, QpState::kRts);
}

// Case P82: both queues, in order, and what is posted after.
TEST_F(QpStateTest, ErrorFlushesBothQueuesInOrder) {
  for (std::uint64_t i = 0; i < 5; ++i) post_write(i, 8);
  for (std::uint64_t i = 10; i < 15; ++i) endpoint.post_receive(qp, i, {endpoint.sge(0, 8)});
  ASSERT_EQ(go(QpState::kErr), 0);
  for (std::uint64_t i = 20; i < 25; ++i) post_write(i, 8);
  endpoint.post_receive(qp, 30, {});
  (void)transmits();
  std::vector<std::uint64_t> ids;
  for (const Cqe& entry : endpoint.poll_all()) {
    EXPECT_EQ(entry.status, WcStatus::kFlushed);
    ids.push_back(entry.wr_id);
  }
  EXPECT_THAT(ids,
              ::testing::ElementsAre(0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 30));
}

// IBTA 10.3.1.5.
TEST_F(QpStateTest, DrainFinishesWhatWasBegunAndSaysSo) {
  post_write(1, 8);
  EXPECT_EQ(transmits().size(), 1U);
  QpAttributes attributes;
  attributes.sqd_notify = true;
  ASSERT_EQ(go(QpState::kSqd, kEnableSqdNotify, attributes), 0);
  post_write(2, 8);
  EXPECT_EQ(transmits().size(), 0U);
  EXPECT_FALSE(endpoint.hca.is_drained(qp.qp));
  ack(100);
  EXPECT_EQ(transmits().size(), 0U);
  ASSERT_EQ(endpoint.event()->type, EventType::kSqDrained);
  EXPECT_TRUE(endpoint.hca.is_drained(qp.qp));
  ASSERT_EQ(go(QpState::kRts), 0);
  EXPECT_EQ(transmits().size(), 1U);
}

// As Linux's drivers have it: the event is asked for with the change of state that it belongs to.
TEST_F(QpStateTest, DrainedIsReportedOnlyForTheChangeThatAskedForIt) {
  QpAttributes attributes;
  attributes.sqd_notify = true;
  ASSERT_EQ(go(QpState::kSqd, kEnableSqdNotify, attributes), 0);
  ASSERT_EQ(endpoint.event()->type, EventType::kSqDrained);
  ASSERT_EQ(go(QpState::kRts), 0);
  ASSERT_EQ(go(QpState::kSqd), 0);
  EXPECT_FALSE(endpoint.event());
  EXPECT_FALSE(endpoint.hca.query_qp(qp.qp).sqd_notify);
}

// As rxe has it: what was begun is awaited, or given up.
TEST_F(QpStateTest, SqdIsLeftOnceDrainedOrForGood) {
  post_write(1, 8);
  (void)transmits();
  ASSERT_EQ(go(QpState::kSqd), 0);
  EXPECT_EQ(go(QpState::kRts), EINVAL);
  EXPECT_EQ(go(QpState::kSqd), EINVAL);
  EXPECT_EQ(endpoint.modify(qp, endpoint.hca.query_qp(qp.qp), kAddressVector), EINVAL);
  EXPECT_EQ(qp.qp.state.load(), QpState::kSqd);
  ack(kFirstPsn);
  EXPECT_EQ(go(QpState::kSqd), 0);
  EXPECT_EQ(go(QpState::kRts), 0);
  for (const QpState end : {QpState::kReset, QpState::kErr}) {
    post_write(2, 8);
    (void)transmits();
    ASSERT_EQ(go(QpState::kSqd), 0);
    EXPECT_EQ(go(end), 0);
    if (end == QpState::kErr) continue;
    endpoint.to_init(qp);
    endpoint.to_rtr(qp, kPeer, Psn(kFirstPsn));
    endpoint.to_rts(qp, Psn(kFirstPsn));
  }
}

TEST_F(QpStateTest, ResetForgetsEverything) {
  post_write(1, 8);
  (void)transmits();
  ASSERT_EQ(go(QpState::kReset), 0);
  EXPECT_EQ(endpoint.hca.next_deadline(), Instant::never());
  ack(100);
  EXPECT_FALSE(endpoint.poll());
  EXPECT_EQ(endpoint.hca.counters().rx_wrong_state, 1U);
  endpoint.to_init(qp);
  endpoint.to_rtr(qp, kPeer, Psn(5));
  endpoint.to_rts(qp, Psn(9));
  post_write(2, 8);
  EXPECT_EQ(transmits().at(0).psn, 9U);
}

TEST_F(QpStateTest, PacketsForUnknownAndForeignQpsAreCounted) {
  wire::Bth header = bth(wire::Opcode::kRcSendOnly, 100);
  header.destination = {0x999};
  endpoint.receive(make_packet(header, 0));
  header.destination = {0xffffff};
  endpoint.receive(make_packet(header, 0));
  EXPECT_EQ(endpoint.hca.counters().rx_unknown_qpn, 2U);
  endpoint.receive(make_packet(bth(wire::Opcode::kUcSendOnly, 100), 0));
  EXPECT_EQ(endpoint.hca.counters().rx_wrong_service, 1U);
  header = bth(wire::Opcode::kRcSendOnly, 100);
  header.pkey = {0x1234};
  endpoint.receive(make_packet(header, 0));
  EXPECT_EQ(endpoint.hca.counters().rx_bad_pkey, 1U);
}

}  // namespace
}  // namespace uroce::test
