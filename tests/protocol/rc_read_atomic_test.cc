// SPDX-License-Identifier: BSD-2-Clause
// READs and atomics against a scripted peer: what is asked for again, what is replayed.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Opcode;

class RcReadAtomic : public RcTest {
 protected:
  void post_read(std::uint32_t bytes, std::uint8_t flags = send_flag::kSignaled) {
    endpoint.post_send(qp, {.operation = SendOperation::kRead,
                            .sges = {endpoint.sge(0, bytes)},
                            .remote_address = 0x4000,
                            .rkey = {7},
                            .flags = flags});
  }
  void response(Opcode opcode, std::uint32_t psn, std::size_t bytes) {
    const bool has_aeth = wire::opcode_info(opcode).aeth;
    const wire::Aeth ack{wire::Syndrome::ack(), {1}};
    endpoint.receive(has_aeth ? make_packet(bth(opcode, psn), bytes, ack)
                              : make_packet(bth(opcode, psn), bytes));
  }
};

// Case P02: only what is missing is asked for again, however often.
TEST_F(RcReadAtomic, RetryAsksForWhatIsMissing) {
  post_read(4096);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadRequest, 100}));
  response(Opcode::kRcReadResponseFirst, 100, 1024);
  response(Opcode::kRcReadResponseLast, 103, 1024);  // 101 and 102 are lost
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadRequest, 101}));
  wire::PacketView view = packets.back().view();
  EXPECT_EQ(view.reth.virtual_address, 0x4000U + 1024);
  EXPECT_EQ(view.reth.dma_bytes, 2048U);
  response(Opcode::kRcReadResponseFirst, 101, 1024);
  EXPECT_THAT(transmits(), IsEmpty());
  pass(milliseconds(1));  // 102 is lost again
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadRequest, 102}));
  view = packets.back().view();
  EXPECT_EQ(view.reth.virtual_address, 0x4000U + 2048);
  EXPECT_EQ(view.reth.dma_bytes, 1024U);
  response(Opcode::kRcReadResponseOnly, 102, 1024);
  EXPECT_EQ(endpoint.poll_all().size(), 0U);
  (void)transmits();
  const auto done = endpoint.poll();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, WcStatus::kSuccess);
}

TEST_F(RcReadAtomic, ResponderReplaysAPartOfARead) {
  endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, 100), 0, reth(0, 4096)));
  EXPECT_EQ(transmits().size(), 4U);
  endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, 102), 0, reth(2048, 2048)));
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseFirst, 102},
                                       Sent{Opcode::kRcReadResponseLast, 103}));
}

// What comes before it is of no use to the peer, and a long one would hold it up.
TEST_F(RcReadAtomic, ARepeatedReadIsAnsweredBeforeLaterOnes) {
  const Packet first = make_packet(bth(Opcode::kRcReadRequest, 100), 0, reth(0, 1024));
  const Packet second = make_packet(bth(Opcode::kRcReadRequest, 101), 0, reth(0, 1024));
  endpoint.receive(first);
  endpoint.receive(second);
  EXPECT_EQ(transmits().size(), 2U);
  endpoint.receive(second);
  endpoint.receive(first);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseOnly, 100},
                                       Sent{Opcode::kRcReadResponseOnly, 101}));
}

TEST_F(RcReadAtomic, ReplayOfWhatWasNeverAskedForIsIgnored) {
  endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, 100), 0, reth(0, 2048)));
  EXPECT_EQ(transmits().size(), 2U);
  endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, 101), 0, reth(0, 8192)));
  EXPECT_THAT(transmits(), IsEmpty());
}

// Case P21.
TEST_F(RcReadAtomic, DuplicateAtomicReturnsTheFirstResult) {
  const Packet request = make_packet(bth(Opcode::kRcFetchAdd, 100), 0,
                                     wire::AtomicEth{endpoint.address(8), {Endpoint::kKey}, 5, 0});
  for (int i = 0; i < 3; ++i) {
    endpoint.receive(request);
    EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAtomicAcknowledge, 100}));
    EXPECT_EQ(packets.back().view().atomic_ack_eth.original, 0U);
  }
  std::uint64_t value = 0;
  std::memcpy(&value, endpoint.buffer.data() + 8, 8);
  EXPECT_EQ(value, 5U);
}

// A responder that was away for a while finds, in one burst, requests that were sent again and new
// ones that the answers to the first have made room for.
TEST_F(RcReadAtomic, NewRequestTakesThePlaceOfARepeatedAnswer) {
  const auto request = [this](std::uint32_t psn) {
    endpoint.receive(make_packet(bth(Opcode::kRcFetchAdd, psn), 0,
                                 wire::AtomicEth{endpoint.address(8), {Endpoint::kKey}, 1, 0}));
  };
  const std::uint32_t limit = qp.qp.responder.replay_limit;
  for (std::uint32_t i = 0; i < limit; ++i) request(100 + i);
  EXPECT_EQ(transmits().size(), limit);
  request(100);
  request(101);
  request(100 + limit);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAtomicAcknowledge, 101},
                                       Sent{Opcode::kRcAtomicAcknowledge, 100 + limit}));
  EXPECT_EQ(packets.back().view().atomic_ack_eth.original, limit);
}

// Case P15.
TEST_F(RcReadAtomic, FenceWaitsForReads) {
  post_read(8);
  endpoint.post_send(
      qp, {.sges = {endpoint.sge(0, 8)}, .flags = send_flag::kSignaled | send_flag::kFence});
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadRequest, 100}));
  response(Opcode::kRcReadResponseOnly, 100, 8);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcSendOnly, 101}));
}

TEST_F(RcReadAtomic, NoMoreReadsThanAgreed) {
  for (int i = 0; i < 20; ++i) post_read(8);
  EXPECT_EQ(transmits().size(), qp.options.max_read_atomic);
  response(Opcode::kRcReadResponseOnly, 100, 8);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadRequest, 116}));
}

TEST_F(RcReadAtomic, AcknowledgementPastAReadMeansThatItsAnswerWasLost) {
  post_read(8);
  post_write(2, 8);
  EXPECT_EQ(transmits().size(), 2U);
  ack(101);
  EXPECT_THAT(transmits(),
              ElementsAre(Sent{Opcode::kRcReadRequest, 100}, Sent{Opcode::kRcWriteOnly, 101}));
  ack(101);  // a second one for the same gap changes nothing
  EXPECT_THAT(transmits(), IsEmpty());
}

TEST_F(RcReadAtomic, ResponseOfWrongLengthIsABadResponse) {
  post_read(2048);
  (void)transmits();
  response(Opcode::kRcReadResponseFirst, 100, 512);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kBadResponse);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

TEST_F(RcReadAtomic, ReadsFitOurOwnWindow) {
  Pair pair(windowed_link(), {}, 1 << 18);
  pair.a.post_send(pair.qp_a, {.operation = SendOperation::kRead,
                               .sges = {pair.a.sge(0, 200'000)},
                               .remote_address = pair.b.address(0),
                               .rkey = {Endpoint::kKey}});
  std::uint32_t most = 0;
  ASSERT_TRUE(pair.run([&](unsigned, const Packet& packet) {
    const wire::PacketView view = packet.view();
    if (view.opcode->kind == wire::Kind::kReadRequest) {
      most = std::max(most, view.reth.dma_bytes);
    }
    return 1;
  }));
  EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess);
  EXPECT_LE(most, windowed_link().peer_window_bytes);
  EXPECT_EQ(pair.a.hca.counters().rewinds, 0U);
}

}  // namespace
}  // namespace uroce::test
