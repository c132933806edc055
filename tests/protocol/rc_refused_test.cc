// SPDX-License-Identifier: BSD-2-Clause
// Frames that a datapath does not take are sent later, in order and without a retry being counted.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;

// Both ends refuse in turns, in a pattern drawn from a seed; everything must still arrive once.
TEST(RcRefused, EverythingIsSentLater) {
  for (const LinkFacts& facts : {wire_link(), windowed_link(), memory_link()}) {
    Pair pair(facts, {}, 1 << 17);
    for (std::size_t i = 0; i < 60'000; ++i) pair.a.buffer[i] = std::byte(i * 31);
    for (std::uint64_t i = 0; i < 48; ++i) {
      pair.b.post_receive(pair.qp_b, i, {pair.b.sge(100'000, 8192)});
      const auto operation = static_cast<SendOperation>(i % 7);
      const std::uint32_t bytes = is_atomic(operation) ? 8 : 5000;
      pair.a.post_send(pair.qp_a, {.operation = operation,
                                   .wr_id = i,
                                   .sges = {pair.a.sge(i * 1000, bytes)},
                                   .remote_address = pair.b.address(i * 1000 / 8 * 8),
                                   .rkey = {Endpoint::kKey}});
    }
    unsigned turn = 0;
    while (pair.a.cq.pending() < 48 && turn < 10'000) {
      pair.a.refuses = turn % 3 != 0;
      pair.b.refuses = turn % 5 != 0;
      for (const Packet& packet : pair.a.transmit()) pair.b.receive(packet);
      for (const Packet& packet : pair.b.transmit()) pair.a.receive(packet);
      ++turn;
    }
    (void)pair.a.transmit();
    for (std::uint64_t i = 0; i < 48; ++i) {
      const auto entry = pair.a.poll();
      ASSERT_TRUE(entry);
      EXPECT_EQ(entry->wr_id, i);
      EXPECT_EQ(entry->status, WcStatus::kSuccess);
    }
    EXPECT_EQ(pair.a.hca.counters().timeouts, 0U);
    EXPECT_EQ(pair.b.hca.counters().duplicate_requests, 0U);
    EXPECT_GT(pair.a.hca.counters().frames_refused, 0U);
  }
}

TEST(RcRefused, CompletionsWaitForTheirResponses) {
  Pair pair(memory_link(), {}, 4096);
  pair.b.post_receive(pair.qp_b, 1, {pair.b.sge(0, 64)});
  pair.a.post_send(pair.qp_a, {.sges = {pair.a.sge(0, 8)}});
  for (const Packet& packet : pair.a.transmit()) pair.b.receive(packet);
  EXPECT_TRUE(pair.b.hca.has_responses_due());
  pair.b.refuses = true;
  (void)pair.b.transmit();
  EXPECT_TRUE(pair.b.hca.has_responses_due());
  pair.b.refuses = false;
  EXPECT_EQ(pair.b.transmit().size(), 1U);
  EXPECT_FALSE(pair.b.hca.has_responses_due());
}

// Whoever destroys it now would leave its peer without the acknowledgement.
TEST(RcRefused, AQueuePairThatOwesAnAnswerIsStillNeeded) {
  Pair pair(memory_link(), {}, 4096);
  pair.b.post_receive(pair.qp_b, 1, {pair.b.sge(0, 64)});
  pair.a.post_send(pair.qp_a, {.sges = {pair.a.sge(0, 8)}});
  for (const Packet& packet : pair.a.transmit()) pair.b.receive(packet);
  pair.b.refuses = true;
  (void)pair.b.transmit();
  const auto is_needed = [&pair] {
    return pair.b.hca.may_be_asked_again(pair.b.now, pair.qp_b.qp, milliseconds(30));
  };
  EXPECT_TRUE(is_needed());
  pair.b.refuses = false;
  (void)pair.b.transmit();
  EXPECT_FALSE(is_needed());
}

TEST(RcRefused, AnAnswerThatIsOwedIsSentOverTheNewPath) {
  using namespace qp_attribute;
  Pair pair(memory_link(), {}, 4096);
  QpAttributes drained;
  drained.state = QpState::kSqd;
  ASSERT_EQ(pair.b.modify(pair.qp_b, drained, kState), 0);
  pair.a.post_send(pair.qp_a, {.operation = SendOperation::kWrite,
                               .sges = {pair.a.sge(0, 8)},
                               .remote_address = pair.b.address(0),
                               .rkey = {Endpoint::kKey}});
  for (const Packet& packet : pair.a.transmit()) pair.b.receive(packet);
  ASSERT_EQ(pair.b.modify(pair.qp_b, pair.qp_b.qp.attributes, kAddressVector), 0);
  EXPECT_EQ(pair.b.transmit().size(), 1U);
}

}  // namespace
}  // namespace uroce::test
