// SPDX-License-Identifier: BSD-2-Clause
// Binding and invalidating windows in the send queue: when they are carried out, when they
// complete, and what follows when they cannot be.
#include "protocol/windows.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Opcode;

class LocalOperation : public WindowFixture {
 protected:
  void post_read() {
    endpoint.post_send(qp, {.operation = SendOperation::kRead,
                            .sges = {endpoint.sge(0, 8)},
                            .remote_address = 0x4000,
                            .rkey = {7}});
  }
  void read_response(std::uint32_t psn) {
    endpoint.receive(make_packet(bth(Opcode::kRcReadResponseOnly, psn), 8,
                                 wire::Aeth{wire::Syndrome::ack(), {1}}));
  }
  bool is_bound(RKey key) {
    const memory::MemoryRegion* window = endpoint.hca.regions().find(key.value);
    return window != nullptr && window->length != 0;
  }
  std::vector<std::uint64_t> completed() {
    std::vector<std::uint64_t> ids;
    for (const Cqe& entry : endpoint.poll_all()) {
      if (entry.status == WcStatus::kSuccess) ids.push_back(entry.wr_id);
    }
    return ids;
  }
};

TEST_F(LocalOperation, NeedsNoPacketAndNoPsn) {
  bind(variant(kType2, 1));
  post_write(1, 8);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, kFirstPsn}));
}

// It waits for nothing, but completes in its turn.
TEST_F(LocalOperation, ABindingIsCarriedOutAtOnceAndCompletesInOrder) {
  post_write(1, 8);
  post_bind(variant(kType2, 1), 2);
  post_write(3, 8);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, kFirstPsn},
                                       Sent{Opcode::kRcWriteOnly, kFirstPsn + 1}));
  EXPECT_TRUE(is_bound(variant(kType2, 1)));
  EXPECT_THAT(completed(), IsEmpty());
  ack(kFirstPsn);
  (void)transmits();
  EXPECT_THAT(completed(), ElementsAre(1, 2));
  ack(kFirstPsn + 1);
  (void)transmits();
  EXPECT_THAT(completed(), ElementsAre(3));
}

class UnsignalledLocalOperation : public LocalOperation {
 protected:
  UnsignalledLocalOperation() : LocalOperation() { qp.qp.signal_all = false; }
};

// Or nobody would.
TEST_F(UnsignalledLocalOperation, WhatIsBeforeItAsksForAnAcknowledgement) {
  endpoint.post_send(qp, {.operation = SendOperation::kWrite,
                          .sges = {endpoint.sge(0, 8)},
                          .remote_address = 0x1000,
                          .rkey = {7},
                          .flags = 0});
  post_bind(variant(kType2, 1), 2);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, kFirstPsn}));
  EXPECT_TRUE(packets[0].view().bth.ack_request);
  ack(kFirstPsn);
  (void)transmits();
  EXPECT_THAT(completed(), ElementsAre(2));
}

// Type 2 cannot be bound twice, so a second time would show.
TEST_F(LocalOperation, IsCarriedOutOnceHoweverOftenTheRequesterGoesBack) {
  post_write(1, 8);
  post_bind(variant(kType2, 1), 2);
  post_write(3, 8);
  const Sent before{Opcode::kRcWriteOnly, kFirstPsn}, behind{Opcode::kRcWriteOnly, kFirstPsn + 1};
  EXPECT_THAT(transmits(), ElementsAre(before, behind));
  pass(milliseconds(1'000));
  EXPECT_THAT(transmits(), ElementsAre(before, behind));
  pass(milliseconds(1'000));
  EXPECT_THAT(transmits(), ElementsAre(before));
  ack(kFirstPsn);
  EXPECT_THAT(transmits(), ElementsAre(behind));
  ack(kFirstPsn + 1);
  (void)transmits();
  EXPECT_THAT(completed(), ElementsAre(1, 2, 3));
}

TEST_F(LocalOperation, SurvivesFramesThatTheDatapathRefuses) {
  post_write(1, 8);
  post_bind(variant(kType2, 1), 2);
  post_write(3, 8);
  endpoint.refuses = true;
  EXPECT_THAT(transmits(), IsEmpty());
  endpoint.refuses = false;
  EXPECT_EQ(transmits().size(), 2U);
  ack(kFirstPsn + 1);
  (void)transmits();
  EXPECT_THAT(completed(), ElementsAre(1, 2, 3));
}

// IBTA 10.8.3.3
TEST_F(LocalOperation, AFencedBindingWaitsForReadsOnly) {
  post_write(1, 8);
  post_read();
  post_bind(variant(kType2, 1), 3, send_flag::kSignaled | send_flag::kFence);
  EXPECT_EQ(transmits().size(), 2U);
  EXPECT_FALSE(is_bound(variant(kType2, 1)));
  read_response(kFirstPsn + 1);
  (void)transmits();
  EXPECT_TRUE(is_bound(variant(kType2, 1)));
}

// IBTA 10.6.5.1, case P15.
TEST_F(LocalOperation, ALocalInvalidateWaitsForEverythingBeforeIt) {
  bind(variant(kType2, 1));
  post_write(1, 8);
  post_invalidate(variant(kType2, 1), 2);
  post_write(3, 8);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, kFirstPsn}));
  EXPECT_TRUE(is_bound(variant(kType2, 1)));
  ack(kFirstPsn);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcWriteOnly, kFirstPsn + 1}));
  EXPECT_FALSE(is_bound(variant(kType2, 1)));
  EXPECT_THAT(completed(), ElementsAre(1, 2));
}

TEST_F(LocalOperation, ASendBehindABindingMayOfferItsKey) {
  post_bind(variant(kType2, 1));
  endpoint.post_send(qp, {.sges = {endpoint.sge(0, 8)}});
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcSendOnly, kFirstPsn}));
  write_through(variant(kType2, 1), kFirstPsn);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn}));
}

struct Wrong {
  const char* name;
  SendRequest request;
  WcStatus status;
};
class WrongLocalOperation : public LocalOperation, public ::testing::WithParamInterface<Wrong> {};

// It fails in its turn: what was before it completes, what is behind it is flushed.
TEST_P(WrongLocalOperation, FailsInItsTurn) {
  post_write(1, 8);
  SendRequest wrong = GetParam().request;
  wrong.wr_id = 2;
  wrong.part.address += endpoint.address(0);
  endpoint.post_send(qp, wrong);
  post_write(3, 8);
  EXPECT_EQ(transmits().size(), 1U);
  EXPECT_THAT(endpoint.poll_all(), IsEmpty());
  ack(kFirstPsn);
  (void)transmits();
  const std::vector<Cqe> done = endpoint.poll_all();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].status, WcStatus::kSuccess);
  EXPECT_EQ(done[1].wr_id, 2U);
  EXPECT_EQ(done[1].status, GetParam().status);
  EXPECT_EQ(done[2].status, WcStatus::kFlushed);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

SendRequest binding(RKey window, const WindowPart& part) {
  return {.operation = SendOperation::kBindWindow, .rkey = window, .part = part};
}
SendRequest invalidation(RKey key) {
  return {.operation = SendOperation::kLocalInvalidate, .rkey = key};
}
constexpr LKey kBuffer{Endpoint::kKey};

INSTANTIATE_TEST_SUITE_P(
    All, WrongLocalOperation,
    ::testing::Values(
        Wrong{"no_such_region", binding(kType1, {{1}, 0, 8, {}}), WcStatus::kWindowBindError},
        Wrong{"no_such_window", binding({1}, {kBuffer, 0, 8, {}}), WcStatus::kWindowBindError},
        Wrong{"outside", binding(kType1, {kBuffer, 1 << 20, 8, {}}), WcStatus::kWindowBindError},
        Wrong{"type_2_to_nothing", binding(kType2, {kBuffer, 0, 0, {}}),
              WcStatus::kWindowBindError},
        Wrong{"no_such_key", invalidation({1}), WcStatus::kLocalQpOperationError},
        Wrong{"a_region", invalidation({Endpoint::kKey}), WcStatus::kLocalQpOperationError},
        Wrong{"type_1", invalidation(kType1), WcStatus::kLocalQpOperationError}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(LocalOperation, InSqdWhatWasBegunIsFinishedAndNothingElseBegun) {
  using namespace qp_attribute;
  bind(variant(kType2, 1));
  post_write(1, 8);
  post_invalidate(variant(kType2, 1), 2);
  post_bind(variant(kType2, 2), 3);
  EXPECT_EQ(transmits().size(), 1U);
  QpAttributes a;
  a.state = QpState::kSqd;
  a.sqd_notify = true;
  ASSERT_EQ(endpoint.modify(qp, a, kState | kEnableSqdNotify), 0);
  ack(kFirstPsn);
  (void)transmits();
  EXPECT_THAT(completed(), ElementsAre(1, 2));
  const auto event = endpoint.event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, EventType::kSqDrained);
  EXPECT_FALSE(is_bound(variant(kType2, 2)));
}

}  // namespace
}  // namespace uroce::test
