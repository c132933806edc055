// SPDX-License-Identifier: BSD-2-Clause
// Extended reliable connections (IBTA annex 14): an initiator whose requests name a receive queue,
// a target that delivers to it.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using wire::NakCode;
using wire::Opcode;
using wire::Xrceth;

constexpr Opcode xrc(Opcode rc) { return wire::in_service(rc, wire::Service::kXrc); }

class XrcInitiator : public RcTest {
 protected:
  static constexpr Qpn kSrq{0xabcdef};

  XrcInitiator() : RcTest({.service = Service::kXrcInitiator}) {}

  void post(SendOperation operation, std::uint32_t bytes) {
    endpoint.post_send(qp, {.operation = operation,
                            .sges = {endpoint.sge(0, bytes)},
                            .remote_address = 0x1000,
                            .rkey = {7},
                            .immediate = 0x1122'3344,
                            .compare_add = 5,
                            .swap = 6,
                            .srq = kSrq});
  }
};

TEST_F(XrcInitiator, NamesTheReceiveQueueInEachPacket) {
  post(SendOperation::kSendWithImmediate, 3 * kMtu);
  EXPECT_THAT(transmits(), ElementsAre(Sent{xrc(Opcode::kRcSendFirst), 100},
                                       Sent{xrc(Opcode::kRcSendMiddle), 101},
                                       Sent{xrc(Opcode::kRcSendLastImmediate), 102}));
  for (const Packet& packet : packets) EXPECT_EQ(packet.view().xrceth.srq, kSrq);
  EXPECT_EQ(packets.back().view().immediate.value, to_big(std::uint32_t{0x1122'3344}));
  EXPECT_EQ(packets.back().view().payload.size(), kMtu);
}

TEST_F(XrcInitiator, EveryOperationHasItsOtherHeadersBehind) {
  post(SendOperation::kWriteWithImmediate, 8);
  post(SendOperation::kRead, 8);
  post(SendOperation::kCompareSwap, 8);
  post(SendOperation::kAtomicWrite, 8);
  EXPECT_THAT(transmits(), ElementsAre(Sent{xrc(Opcode::kRcWriteOnlyImmediate), 100},
                                       Sent{xrc(Opcode::kRcReadRequest), 101},
                                       Sent{xrc(Opcode::kRcCompareSwap), 102},
                                       Sent{xrc(Opcode::kRcAtomicWrite), 103}));
  for (const Packet& packet : packets) EXPECT_EQ(packet.view().xrceth.srq, kSrq);
  EXPECT_EQ(packets[0].view().reth.dma_bytes, 8U);
  EXPECT_EQ(packets[0].view().immediate.value, to_big(std::uint32_t{0x1122'3344}));
  EXPECT_EQ(packets[1].view().reth.virtual_address, 0x1000U);
  EXPECT_EQ(packets[2].view().atomic_eth.compare, 5U);
  EXPECT_EQ(packets[2].view().atomic_eth.swap_or_add, 6U);
  EXPECT_EQ(packets[3].view().payload.size(), 8U);
}

TEST_F(XrcInitiator, IsAnsweredInItsOwnService) {
  post(SendOperation::kSend, 8);
  (void)transmits();
  ack(100);  // of RC
  EXPECT_EQ(endpoint.poll(), std::nullopt);
  endpoint.receive(make_packet(bth(xrc(Opcode::kRcAcknowledge), 100), 0,
                               wire::Aeth{wire::Syndrome::ack(), {1}}));
  (void)transmits();
  const auto done = endpoint.poll();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, WcStatus::kSuccess);
}

TEST_F(XrcInitiator, SendsAgainWhatWasLostWithTheSameHeaders) {
  post(SendOperation::kSend, 8);
  (void)transmits();
  const std::vector<std::byte> first = packets.front().bytes;
  pass(endpoint.next_deadline() - endpoint.now);
  EXPECT_THAT(transmits(), ElementsAre(Sent{xrc(Opcode::kRcSendOnly), 100}));
  EXPECT_EQ(packets.front().bytes, first);
}

TEST_F(XrcInitiator, HasNoHalfThatServesRequests) {
  endpoint.receive(
      make_packet(bth(xrc(Opcode::kRcWriteOnly), 100, true), 8, Xrceth{kSrq}, reth(0, 8)));
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_EQ(endpoint.hca.counters().rx_wrong_service, 1U);
}

// A shared receive queue of an XRC domain.
struct DomainSrq {
  DomainSrq(Endpoint& endpoint, Qpn number, XrcdId xrcd, PdId pd, CompletionQueue& cq)
      : memory(RecvQueue::ring_slots(16) * std::size_t{80}) {
    srq.queue.set_memory(memory, 16, 80);
    srq.number = number;
    srq.xrcd = xrcd;
    srq.pd = pd;
    srq.cq = &cq;
    endpoint.hca.insert_srq(srq);
  }
  void post(std::uint64_t wr_id, const memory::Sge& sge) {
    Endpoint::post_receive(srq.queue, wr_id, {&sge, 1});
  }

  std::vector<std::byte> memory;
  Srq srq;
};

class XrcTarget : public RcTest {
 protected:
  static constexpr XrcdId kDomain{3};
  static constexpr Qpn kFirst{0x102}, kSecond{0x103}, kForeign{0x104};
  static constexpr PdId kOtherPd{9};

  XrcTarget()
      : RcTest({.service = Service::kXrcTarget, .xrcd = kDomain}),
        second_memory_(64),
        first(endpoint, kFirst, kDomain, Endpoint::kPd, endpoint.cq),
        second(endpoint, kSecond, kDomain, kOtherPd, second_cq),
        foreign(endpoint, kForeign, XrcdId{4}, Endpoint::kPd, endpoint.cq) {
    second_cq.set_memory(second_memory_, 64);
  }

  void send(Opcode rc, std::uint32_t psn, std::uint32_t bytes, Qpn srq) {
    endpoint.receive(make_packet(bth(xrc(rc), psn, true), bytes, Xrceth{srq}));
  }
  void write(std::uint32_t psn, Qpn srq) {
    endpoint.receive(
        make_packet(bth(xrc(Opcode::kRcWriteOnly), psn, true), 8, Xrceth{srq}, reth(0, 8)));
  }
  wire::Syndrome answer() {
    (void)transmits();
    return packets.empty() ? wire::Syndrome{} : packets.back().view().aeth.syndrome;
  }

  std::vector<Cqe> second_memory_;
  CompletionQueue second_cq;
  DomainSrq first, second, foreign;
};

TEST_F(XrcTarget, DeliversToTheQueueThatIsNamed) {
  first.post(1, endpoint.sge(0, 64));
  send(Opcode::kRcSendOnly, 100, 8, kFirst);
  EXPECT_THAT(transmits(), ElementsAre(Sent{xrc(Opcode::kRcAcknowledge), 100}));
  const auto done = endpoint.poll();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->wr_id, 1U);
  EXPECT_EQ(done->qpn, kOurs);
  EXPECT_EQ(done->byte_count, 8U);
  EXPECT_EQ(first.srq.queue.free_slots(), 16U);
}

TEST_F(XrcTarget, OneConnectionServesManyQueues) {
  first.post(1, endpoint.sge(0, 64));
  first.post(2, endpoint.sge(0, 64));
  second.post(3, {});
  send(Opcode::kRcSendOnly, 100, 8, kFirst);
  send(Opcode::kRcSendOnly, 101, 0, kSecond);
  send(Opcode::kRcSendOnly, 102, 8, kFirst);
  (void)transmits();
  EXPECT_THAT(endpoint.poll_all(), ElementsAre(Field(&Cqe::wr_id, 1U), Field(&Cqe::wr_id, 2U)));
  ASSERT_NE(second_cq.front(), nullptr);
  EXPECT_EQ(second_cq.front()->wr_id, 3U);
}

TEST_F(XrcTarget, WhatMayBeReachedIsTheNamedQueuesToGrant) {
  write(100, kFirst);
  EXPECT_EQ(answer().kind(), wire::SyndromeKind::kAck);
  write(101, kSecond);  // whose protection domain has no such region
  EXPECT_EQ(answer().nak_code(), NakCode::kRemoteAccess);
}

// What is answered later is answered with the rights that it was asked with.
TEST_F(XrcTarget, AReadKeepsTheRightsOfItsQueue) {
  second.post(3, {});
  endpoint.receive(
      make_packet(bth(xrc(Opcode::kRcReadRequest), 100), 0, Xrceth{kFirst}, reth(0, 8)));
  send(Opcode::kRcSendOnly, 101, 0, kSecond);
  EXPECT_THAT(transmits(), ElementsAre(Sent{xrc(Opcode::kRcReadResponseOnly), 100},
                                       Sent{xrc(Opcode::kRcAcknowledge), 101}));
}

TEST_F(XrcTarget, WaitsWhenTheQueueIsEmpty) {
  send(Opcode::kRcSendOnly, 100, 8, kFirst);
  EXPECT_EQ(answer().kind(), wire::SyndromeKind::kRnrNak);
  first.post(1, endpoint.sge(0, 64));
  send(Opcode::kRcSendOnly, 100, 8, kFirst);
  EXPECT_EQ(answer().kind(), wire::SyndromeKind::kAck);
}

class NoSuchQueue : public XrcTarget, public ::testing::WithParamInterface<Qpn> {};

TEST_P(NoSuchQueue, IsAnInvalidRequestAndTheEnd) {
  send(Opcode::kRcSendOnly, 100, 8, GetParam());
  EXPECT_EQ(answer().nak_code(), NakCode::kInvalidRequest);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
  const auto event = endpoint.event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, EventType::kQpRequestError);
}
// Nobody's, the target's own number, and one of another domain.
INSTANTIATE_TEST_SUITE_P(All, NoSuchQueue,
                         ::testing::Values(Qpn{0x1ff}, Qpn{0xff'ffff}, kOurs, Qpn{0x104}));

TEST_F(XrcTarget, AMessageStaysWithItsQueue) {
  first.post(1, endpoint.sge(0, 4096));
  send(Opcode::kRcSendFirst, 100, kMtu, kFirst);
  send(Opcode::kRcSendLast, 101, 8, kSecond);
  EXPECT_EQ(answer().nak_code(), NakCode::kInvalidRequest);
  EXPECT_THAT(endpoint.poll_all(),
              ElementsAre(Field(&Cqe::status, WcStatus::kRemoteInvalidRequest)));
}

TEST_F(XrcTarget, AQueueThatGoesTakesTheReceiveInHandWithIt) {
  first.post(1, endpoint.sge(0, 4096));
  send(Opcode::kRcSendFirst, 100, kMtu, kFirst);
  endpoint.hca.forget(first.srq);
  send(Opcode::kRcSendLast, 101, 8, kFirst);
  EXPECT_EQ(answer().nak_code(), NakCode::kInvalidRequest);
  EXPECT_THAT(endpoint.poll_all(), IsEmpty());
}

TEST_F(XrcTarget, ATargetThatIsResetLeavesItsQueue) {
  first.post(1, endpoint.sge(0, 4096));
  send(Opcode::kRcSendFirst, 100, kMtu, kFirst);
  QpAttributes reset;
  ASSERT_EQ(endpoint.modify(qp, reset, qp_attribute::kState), 0);
  EXPECT_EQ(first.srq.queue.free_slots(), 16U);
  endpoint.hca.forget(first.srq);
  EXPECT_EQ(qp.qp.srq, nullptr);
}

TEST_F(XrcTarget, HasNoHalfThatTakesAnswers) {
  endpoint.receive(make_packet(bth(xrc(Opcode::kRcAcknowledge), 100), 0,
                               wire::Aeth{wire::Syndrome::ack(), {1}}));
  EXPECT_EQ(endpoint.hca.counters().rx_wrong_service, 1U);
}

TEST_F(XrcTarget, AQueuesNumberIsNoQueuePairs) {
  wire::Bth to_queue = bth(xrc(Opcode::kRcSendOnly), 100, true);
  to_queue.destination = kFirst;
  endpoint.receive(make_packet(to_queue, 8, Xrceth{kFirst}));
  EXPECT_EQ(endpoint.hca.counters().rx_unknown_qpn, 1U);
}

}  // namespace
}  // namespace uroce::test
