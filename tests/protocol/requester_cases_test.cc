// SPDX-License-Identifier: BSD-2-Clause
// The requester's faults that other stacks have had (docs/CONFORMANCE.md, P01 to P17): sequence
// numbers at their wrap, retries, timers, errors.
#include <algorithm>
#include <set>

#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Kind;
using wire::Opcode;

constexpr std::uint16_t kMtu = 1024;

void fill(Endpoint& endpoint) {
  for (std::size_t i = 0; i < endpoint.buffer.size(); ++i) {
    endpoint.buffer[i] = std::byte(i * 7 + (i >> 9));
  }
}

SendRequest request(const Pair& pair, SendOperation operation, std::size_t offset,
                    std::uint32_t bytes) {
  return {.operation = operation,
          .sges = {pair.a.sge(offset, bytes)},
          .remote_address = pair.b.address(offset),
          .rkey = {Endpoint::kKey},
          .compare_add = 1};
}

// P01. The first PSN stands before the wrap by 0 to 16.
TEST(RequesterCases, PsnsWrapInsideOfAnyMessage) {
  for (std::uint32_t before = 0; before <= 16; ++before) {
    Pair pair(wire_link(), {.capacity = 128}, 1 << 19, Psn(0x100'0000 - before));
    fill(pair.a);
    for (std::size_t i = 0; i < 64; ++i) {
      pair.a.post_send(pair.qp_a, request(pair, SendOperation::kWrite, i * 4096, 4096));
    }
    pair.a.post_send(pair.qp_a, request(pair, SendOperation::kRead, 65 * 4096, 16 * 1024));
    ASSERT_TRUE(pair.run());
    const auto all = pair.a.poll_all();
    ASSERT_EQ(all.size(), 65U);
    for (const Cqe& entry : all) EXPECT_EQ(entry.status, WcStatus::kSuccess);
    EXPECT_EQ(std::memcmp(pair.a.buffer.data(), pair.b.buffer.data(), 64 * 4096), 0);
    EXPECT_EQ(pair.a.hca.counters().timeouts + pair.b.hca.counters().out_of_sequence, 0U);
  }
}

// P04: each packet of an 8-packet message lost once, for WRITE and SEND.
class OneLost : public ::testing::TestWithParam<std::tuple<SendOperation, unsigned>> {};

TEST_P(OneLost, ComesAgainAtItsPlaceAndNothingBesideIt) {
  const auto [operation, lost] = GetParam();
  Pair pair(wire_link(), {}, 16 * kMtu);
  fill(pair.a);
  const std::vector<std::byte> untouched = pair.b.buffer;
  pair.b.post_receive(pair.qp_b, 1, {pair.b.sge(4 * kMtu, 8 * kMtu)});
  pair.a.post_send(pair.qp_a, request(pair, operation, 4 * kMtu, 8 * kMtu));
  std::set<std::uint64_t> targets;
  ASSERT_TRUE(pair.run([&, lost = lost](unsigned index, const Packet& packet) {
    if (packet.view().opcode->reth) targets.insert(packet.view().reth.virtual_address);
    return index == lost ? 0 : 1;
  }));
  EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess);
  const auto* from = pair.a.buffer.data();
  const auto* to = pair.b.buffer.data();
  EXPECT_EQ(std::memcmp(to, untouched.data(), 4 * kMtu), 0);
  EXPECT_EQ(std::memcmp(to + 4 * kMtu, from + 4 * kMtu, 8 * kMtu), 0);
  EXPECT_EQ(std::memcmp(to + 12 * kMtu, untouched.data(), 4 * kMtu), 0);
  // A repeated FIRST names the original address.
  EXPECT_EQ(targets.size(), operation == SendOperation::kWrite ? 1U : 0U);
}

INSTANTIATE_TEST_SUITE_P(All, OneLost,
                         ::testing::Combine(::testing::Values(SendOperation::kWrite,
                                                              SendOperation::kSend),
                                            ::testing::Range(0U, 8U)));

// P05: whichever packet of 64 is lost, no packet is sent more than once more.
TEST(RequesterCases, OneLossRepeatsNoPacketTwice) {
  for (unsigned lost = 0; lost < 63; ++lost) {
    Pair pair(wire_link(), {}, 128 * kMtu);
    pair.a.post_send(pair.qp_a, request(pair, SendOperation::kWrite, 0, 64 * kMtu));
    unsigned data = 0;
    ASSERT_TRUE(pair.run([&](unsigned index, const Packet& packet) {
      data += packet.view().opcode->is_request ? 1U : 0U;
      return index == lost ? 0 : 1;
    }));
    EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess);
    EXPECT_LE(data, 128U);
    EXPECT_EQ(pair.b.hca.counters().naks_sent, 1U);
    EXPECT_EQ(pair.a.hca.counters().timeouts, 0U);
  }
}

// P06: N of 0 to 6 is that many retries; 7 is RcNoTimeout.RnrRetrySevenIsForEver.
class RnrRetries : public RcTest, public ::testing::WithParamInterface<std::uint8_t> {
 protected:
  RnrRetries() : RcTest({.timeout = 0, .rnr_retry = GetParam()}) {}
};

TEST_P(RnrRetries, AreAsManyAsWereSet) {
  endpoint.post_send(qp, {.sges = {endpoint.sge(0, 8)}});
  unsigned requests = 0;
  while (!transmits().empty()) {
    ++requests;
    rnr(kFirstPsn, 1);
    pass(microseconds(10));
  }
  EXPECT_EQ(requests, GetParam() + 1U);
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kRnrRetryExceeded);
}

INSTANTIATE_TEST_SUITE_P(Counts, RnrRetries, ::testing::Range<std::uint8_t>(0, 7));

// P07: for every code of the table.
TEST(RequesterCases, EveryRnrTimerIsWaitedForInFull) {
  for (std::uint8_t code = 0; code < 32; ++code) {
    Pair pair(wire_link(), {.timeout = 1, .min_rnr_timer = code}, 4096);
    pair.a.post_send(pair.qp_a, request(pair, SendOperation::kSend, 0, 8));
    for (const Packet& packet : pair.a.transmit()) pair.b.receive(packet);
    for (const Packet& packet : pair.b.transmit()) pair.a.receive(packet);
    const Instant end = pair.a.now + wire::kRnrTimers[code];
    pair.a.now = {end.ns - 1};
    pair.a.timers();
    EXPECT_THAT(pair.a.transmit(), IsEmpty()) << int{code};
    pair.a.now = end;
    pair.a.timers();
    EXPECT_EQ(pair.a.transmit().size(), 1U) << int{code};
  }
}

// P09.
TEST(RequesterCases, WithoutLossNothingIsSentTwice) {
  Pair pair(wire_link(), {.timeout = 10}, 1 << 16);
  for (int i = 0; i < 1000; ++i) {
    const auto operation = static_cast<SendOperation>(i % 7);
    const bool takes_receive = i % 7 <= 1 || operation == SendOperation::kWriteWithImmediate;
    if (takes_receive) pair.b.post_receive(pair.qp_b, 1, {pair.b.sge(0, 4096)});
    pair.a.post_send(pair.qp_a, request(pair, operation, 0, is_atomic(operation) ? 8 : 4000));
    ASSERT_TRUE(pair.run());
    EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess);
    (void)pair.b.poll();
  }
  EXPECT_EQ(pair.b.hca.counters().duplicate_requests, 0U);
  EXPECT_EQ(pair.a.hca.counters().timeouts + pair.a.hca.counters().retransmitted_packets, 0U);
}

// P09: each packet of a READ's answer is progress.
TEST_F(RcTest, AReadThatTakesLongerThanTheTimeOutIsNotRepeated) {
  endpoint.post_send(qp, {.operation = SendOperation::kRead,
                          .sges = {endpoint.sge(0, 100 * kMtu)},
                          .remote_address = 0x1000});
  EXPECT_EQ(transmits().size(), 1U);
  const Duration nearly = nanoseconds((4096LL << qp.options.timeout) - 1);
  for (std::uint32_t i = 0; i < 100; ++i) {
    pass(nearly);
    EXPECT_THAT(transmits(), IsEmpty());
    const wire::Aeth ack{wire::Syndrome::ack(), {1}};
    const bool is_end = i == 0 || i == 99;
    const Opcode opcode = i == 0    ? Opcode::kRcReadResponseFirst
                          : i == 99 ? Opcode::kRcReadResponseLast
                                    : Opcode::kRcReadResponseMiddle;
    endpoint.receive(is_end ? make_packet(bth(opcode, kFirstPsn + i), kMtu, ack)
                            : make_packet(bth(opcode, kFirstPsn + i), kMtu));
  }
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kSuccess);
  EXPECT_EQ(endpoint.hca.counters().timeouts, 0U);
}

// P11: into a black hole, for every operation; then the queue pair goes without a wait.
TEST(RequesterCases, WithoutATimeOutNothingIsSentAgain) {
  for (std::size_t i = 0; i < kSendOperationCount; ++i) {
    Pair pair(wire_link(), {.timeout = 0}, 1 << 16);
    const auto operation = static_cast<SendOperation>(i);
    if (is_local(operation)) continue;
    pair.a.post_send(pair.qp_a, request(pair, operation, 0, is_word(operation) ? 8 : 3000));
    EXPECT_FALSE(pair.a.transmit().empty());
    for (int second = 0; second < 5; ++second) {
      pair.a.now = pair.a.now + milliseconds(1000);
      pair.a.timers();
      EXPECT_THAT(pair.a.transmit(), IsEmpty());
    }
    EXPECT_FALSE(pair.a.poll());
    EXPECT_EQ(pair.a.hca.next_deadline(), Instant::never());
    pair.a.hca.destroy_qp(pair.qp_a.qp);
    EXPECT_TRUE(pair.a.hca.is_quiet());
  }
}

// P12: the NAK is lost as well.
TEST(RequesterCases, ALostNakIsMadeGoodByTheTimer) {
  Pair pair(wire_link(), {}, 1 << 16);
  fill(pair.a);
  pair.a.post_send(pair.qp_a, request(pair, SendOperation::kWrite, 0, 10 * kMtu));
  unsigned lost_naks = 0;
  ASSERT_TRUE(pair.run([&](unsigned index, const Packet& packet) {
    const auto view = packet.view();
    const bool is_nak = view.opcode->aeth && view.aeth.syndrome.kind() == wire::SyndromeKind::kNak;
    if (is_nak && lost_naks == 0) {
      EXPECT_EQ(view.bth.psn, Psn(101));
      EXPECT_EQ(view.aeth.syndrome.nak_code(), wire::NakCode::kPsnSequence);
      ++lost_naks;
      return 0;
    }
    return index == 1 ? 0 : 1;
  }));
  EXPECT_EQ(lost_naks, 1U);
  EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess);
  EXPECT_EQ(std::memcmp(pair.a.buffer.data(), pair.b.buffer.data(), 10 * kMtu), 0);
}

// P14: a datapath that takes little holds the responder back, and no timer has to help.
TEST(RequesterCases, AReadOfAnySizeNeedsNoTimerHoweverLittleIsTaken) {
  for (const LinkFacts& facts : {wire_link(), windowed_link(), memory_link()}) {
    for (const std::uint32_t bytes : {64U << 10, 1U << 20, 8U << 20}) {
      Pair pair(facts, {}, 8 << 20);
      fill(pair.b);
      pair.a.post_send(pair.qp_a, request(pair, SendOperation::kRead, 0, bytes));
      for (unsigned turn = 0; !pair.a.cq.front() && turn < 100'000; ++turn) {
        pair.b.refuses = turn % 3 != 0;
        for (const Packet& packet : pair.a.transmit()) pair.b.receive(packet);
        for (const Packet& packet : pair.b.transmit()) pair.a.receive(packet);
      }
      EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess);
      EXPECT_EQ(std::memcmp(pair.a.buffer.data(), pair.b.buffer.data(), bytes), 0);
      EXPECT_EQ(pair.a.hca.counters().timeouts + pair.a.hca.counters().rewinds, 0U);
    }
  }
}

// P15: behind four READs a fenced request leaves after the fourth answer, another one at once.
class Fence : public RcTest, public ::testing::WithParamInterface<SendOperation> {
 protected:
  void post_behind_reads(std::uint8_t flags) {
    for (std::size_t i = 0; i < 4; ++i) {
      endpoint.post_send(qp, {.operation = SendOperation::kRead,
                              .sges = {endpoint.sge(i * 8, 8)},
                              .remote_address = 0x1000});
    }
    endpoint.post_send(qp, {.operation = GetParam(),
                            .sges = {endpoint.sge(0, 8)},
                            .remote_address = 0x1000,
                            .flags = flags});
  }
};

TEST_P(Fence, WaitsForEveryReadBeforeIt) {
  post_behind_reads(send_flag::kSignaled | send_flag::kFence);
  EXPECT_EQ(transmits().size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_THAT(transmits(), IsEmpty());
    endpoint.receive(make_packet(bth(Opcode::kRcReadResponseOnly, kFirstPsn + i), 8,
                                 wire::Aeth{wire::Syndrome::ack(), {}}));
  }
  EXPECT_EQ(transmits().size(), 1U);
}

TEST_P(Fence, IsNotThereUnlessAskedFor) {
  post_behind_reads(send_flag::kSignaled);
  EXPECT_EQ(transmits().size(), 5U);
}

INSTANTIATE_TEST_SUITE_P(Operations, Fence,
                         ::testing::Values(SendOperation::kSend, SendOperation::kWrite,
                                           SendOperation::kRead, SendOperation::kFetchAdd));

// P17: three times round the ring, polled at different times.
TEST_F(RcTest, InErrorEveryRequestIsFlushedOnceAndInOrder) {
  QpAttributes attributes;
  attributes.state = QpState::kErr;
  ASSERT_EQ(endpoint.modify(qp, attributes, qp_attribute::kState), 0);
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  for (std::uint32_t batch = 1; posted < 3 * qp.options.capacity; batch = batch % 7 + 1) {
    for (std::uint32_t i = 0; i < batch; ++i) post_write(posted++, 8);
    (void)transmits();
    for (const Cqe& entry : endpoint.poll_all()) {
      EXPECT_EQ(entry.wr_id, completed++);
      EXPECT_EQ(entry.status, WcStatus::kFlushed);
    }
  }
  EXPECT_EQ(completed, posted);
}

}  // namespace
}  // namespace uroce::test
