// SPDX-License-Identifier: BSD-2-Clause
// Completion queues: overrun, arming, resizing, purging, slots; shared receive queues.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;

struct Ring {
  explicit Ring(std::uint32_t capacity) : memory(CompletionQueue::ring_slots(capacity)) {
    cq.set_memory(memory, capacity);
  }
  bool stage(std::uint64_t wr_id, Qpn qpn = {1}, bool solicited = false) {
    Cqe* const entry = cq.stage(solicited);
    if (entry == nullptr) return false;
    *entry = {};
    entry->wr_id = wr_id;
    entry->qpn = qpn;
    return true;
  }
  std::vector<std::uint64_t> drain() {
    std::vector<std::uint64_t> ids;
    while (const Cqe* entry = cq.front()) {
      ids.push_back(entry->wr_id);
      cq.pop();
    }
    return ids;
  }
  std::vector<Cqe> memory;
  CompletionQueue cq;
};

TEST(CompletionQueueTest, StagedIsInvisibleUntilPublished) {
  Ring ring(4);
  ASSERT_TRUE(ring.stage(1));
  EXPECT_EQ(ring.cq.front(), nullptr);
  (void)ring.cq.publish({});
  EXPECT_THAT(ring.drain(), ::testing::ElementsAre(1));
}

TEST(CompletionQueueTest, HoldsExactlyItsCapacity) {
  for (std::uint32_t capacity : {1U, 2U, 3U, 7U, 8U}) {
    Ring ring(capacity);
    for (std::uint32_t i = 0; i < capacity; ++i) EXPECT_TRUE(ring.stage(i));
    EXPECT_FALSE(ring.stage(99));
    EXPECT_TRUE(ring.cq.has_overrun());
  }
}

TEST(CompletionQueueTest, ArmedOnceAnnouncedOnce) {
  Ring ring(8);
  ring.cq.arm(Arm::kAny);
  ASSERT_TRUE(ring.stage(1));
  EXPECT_TRUE(ring.cq.publish({}));
  ASSERT_TRUE(ring.stage(2));
  EXPECT_FALSE(ring.cq.publish({}));
}

// Programs poll until nothing is left, arm and sleep.
TEST(CompletionQueueTest, WhatCameBetweenPollingAndArmingIsAnnounced) {
  Ring ring(8);
  ASSERT_TRUE(ring.stage(1));
  EXPECT_FALSE(ring.cq.publish({}));
  ring.cq.arm(Arm::kAny);
  EXPECT_TRUE(ring.cq.announce_missed());
  ring.cq.arm(Arm::kAny);
  EXPECT_FALSE(ring.cq.announce_missed());  // once
  ASSERT_TRUE(ring.stage(2));
  EXPECT_TRUE(ring.cq.publish({}));
}

TEST(CompletionQueueTest, WhatWasAnnouncedOrPolledIsNotAnnouncedByArming) {
  Ring ring(8);
  ring.cq.arm(Arm::kAny);
  ASSERT_TRUE(ring.stage(1));
  EXPECT_TRUE(ring.cq.publish({}));
  ring.cq.arm(Arm::kAny);
  EXPECT_FALSE(ring.cq.announce_missed());
  ASSERT_TRUE(ring.stage(2));
  EXPECT_TRUE(ring.cq.publish({}));
  ASSERT_TRUE(ring.stage(3));
  EXPECT_FALSE(ring.cq.publish({}));
  (void)ring.drain();
  ring.cq.arm(Arm::kAny);
  EXPECT_FALSE(ring.cq.announce_missed());
}

TEST(CompletionQueueTest, ArmedForSolicitedOnlyThoseAreMissed) {
  Ring ring(8);
  ASSERT_TRUE(ring.stage(1));
  EXPECT_FALSE(ring.cq.publish({}));
  ring.cq.arm(Arm::kSolicited);
  EXPECT_FALSE(ring.cq.announce_missed());
  EXPECT_FALSE(ring.cq.publish({}));
  Ring other(8);
  ASSERT_TRUE(other.stage(1, {1}, true));
  EXPECT_FALSE(other.cq.publish({}));
  other.cq.arm(Arm::kSolicited);
  EXPECT_TRUE(other.cq.announce_missed());
}

TEST(CompletionQueueTest, SolicitedArmWaitsForSolicited) {
  Ring ring(8);
  ring.cq.arm(Arm::kSolicited);
  ASSERT_TRUE(ring.stage(1));
  EXPECT_FALSE(ring.cq.publish({}));
  ASSERT_TRUE(ring.stage(2, {1}, true));
  EXPECT_TRUE(ring.cq.publish({}));
}

TEST(CompletionQueueTest, PurgeKeepsOthersInOrderAndStagedOnesStaged) {
  Ring ring(8);
  for (std::uint64_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(ring.stage(i, {static_cast<std::uint32_t>(i % 2)}));
    if (i == 3) (void)ring.cq.publish({});
  }
  ring.cq.purge({1}, nullptr);
  EXPECT_THAT(ring.drain(), ::testing::ElementsAre(0, 2));
  (void)ring.cq.publish({});
  EXPECT_THAT(ring.drain(), ::testing::ElementsAre(4));
}

TEST(CompletionQueueTest, ResizeKeepsWhatIsPending) {
  Ring ring(4);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(ring.stage(i));
  (void)ring.cq.publish({});
  std::vector<Cqe> larger(16);
  ring.cq.move_to(larger, 16);
  for (std::uint64_t i = 3; i < 10; ++i) ASSERT_TRUE(ring.stage(i));
  (void)ring.cq.publish({});
  EXPECT_EQ(ring.drain().size(), 10U);
}

TEST(CqOverrun, IsAnEventAndEndsTheQp) {
  Endpoint endpoint(4096, 2);
  endpoint.set_link(wire_link());
  TestQp& qp = endpoint.add_qp({0x101});
  endpoint.to_init(qp);
  endpoint.to_rtr(qp, {0x201}, Psn(0));
  for (std::uint64_t i = 0; i < 3; ++i) endpoint.post_receive(qp, i, {endpoint.sge(0, 8)});
  for (std::uint32_t i = 0; i < 3; ++i) {
    endpoint.receive(make_packet(
        {.opcode = wire::Opcode::kRcSendOnly, .destination = {0x101}, .psn = Psn(i)}, 8));
  }
  bool cq_error = false;
  bool qp_fatal = false;
  while (auto event = endpoint.event()) {
    cq_error |= event->cq == &endpoint.cq && event->type == EventType::kCqError;
    qp_fatal |= event->qp == &qp.qp && event->type == EventType::kQpFatal;
  }
  EXPECT_TRUE(cq_error);
  EXPECT_TRUE(qp_fatal);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

// Each QP that lost a completion hears of it and ends, however many share the queue; the queue's
// own event is one.
TEST(CqOverrun, EndsEachQpThatLostACompletion) {
  Endpoint endpoint(4096, 1);
  endpoint.set_link(wire_link());
  const Qpn numbers[] = {{0x101}, {0x102}};
  for (const Qpn number : numbers) {
    TestQp& qp = endpoint.add_qp(number);
    endpoint.to_init(qp);
    endpoint.to_rtr(qp, {0x201}, Psn(0));
    for (std::uint64_t i = 0; i < 3; ++i) endpoint.post_receive(qp, i, {endpoint.sge(0, 8)});
    for (std::uint32_t i = 0; i < 2; ++i) {
      endpoint.receive(make_packet(
          {.opcode = wire::Opcode::kRcSendOnly, .destination = number, .psn = Psn(i)}, 8));
    }
    EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
  }
  int cq_errors = 0;
  std::vector<Qpn> fatal;
  while (auto event = endpoint.event()) {
    cq_errors += event->cq == &endpoint.cq && event->type == EventType::kCqError;
    if (event->type == EventType::kQpFatal) fatal.push_back(event->qp->number);
  }
  EXPECT_EQ(cq_errors, 1);
  EXPECT_THAT(fatal, ::testing::ElementsAre(numbers[0], numbers[1]));
}

// Case P86: a slot is free when its completion was polled, not before.
TEST(SendSlots, AreOutstandingUntilPolled) {
  QpOptions options;
  options.capacity = 3;
  options.signal_all = false;
  Pair pair(wire_link(), options, 4096);
  const SendRequest quiet{.operation = SendOperation::kWrite, .sges = {}, .flags = 0};
  SendRequest signaled = quiet;
  signaled.flags = send_flag::kSignaled;
  pair.a.post_send(pair.qp_a, quiet);
  pair.a.post_send(pair.qp_a, quiet);
  pair.a.post_send(pair.qp_a, signaled);
  EXPECT_EQ(pair.qp_a.qp.send_queue.free_slots(), 0U);
  ASSERT_TRUE(pair.run());
  EXPECT_EQ(pair.qp_a.qp.send_queue.free_slots(), 0U);
  ASSERT_TRUE(pair.a.poll());
  EXPECT_EQ(pair.qp_a.qp.send_queue.free_slots(), 3U);
}

// Cases P84, P85.
TEST(SharedReceiveQueue, FeedsSeveralQpsAndReportsItsLimit) {
  std::vector<std::byte> memory(64 * 64);
  Srq srq;
  srq.queue.set_memory(memory, 64, 64);
  Endpoint endpoint(4096);
  endpoint.set_link(wire_link());
  QpOptions options;
  options.srq = &srq;
  TestQp* qps[2] = {&endpoint.add_qp({0x101}, options), &endpoint.add_qp({0x102}, options)};
  for (TestQp* qp : qps) {
    endpoint.to_init(*qp);
    endpoint.to_rtr(*qp, {0x201}, Psn(0));
  }
  for (std::uint64_t i = 0; i < 4; ++i) endpoint.post_receive(*qps[0], i, {endpoint.sge(0, 64)});
  srq.limit = 3;
  for (std::uint32_t i = 0; i < 4; ++i) {
    endpoint.receive(make_packet({.opcode = wire::Opcode::kRcSendOnly,
                                  .destination = qps[i % 2]->qp.number,
                                  .psn = Psn(i / 2)},
                                 8));
  }
  (void)endpoint.transmit();
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto entry = endpoint.poll();
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->wr_id, i);
    EXPECT_EQ(entry->qpn, qps[i % 2]->qp.number);
  }
  int limits = 0;
  while (auto event = endpoint.event()) limits += event->type == EventType::kSrqLimitReached;
  EXPECT_EQ(limits, 1);
  EXPECT_EQ(srq.queue.free_slots(), 64U);
  QpAttributes attributes;
  attributes.state = QpState::kErr;
  ASSERT_EQ(endpoint.modify(*qps[0], attributes, qp_attribute::kState), 0);
  EXPECT_EQ(endpoint.event()->type, EventType::kQpLastWqeReached);
}

}  // namespace
}  // namespace uroce::test
