// SPDX-License-Identifier: BSD-2-Clause
// ATOMIC WRITE (IBTA annex 19): a word that nobody sees in part, answered by a READ's answer of no
// bytes.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::NakCode;
using wire::Opcode;

constexpr std::byte kFill{0x5a};

class AtomicWrite : public RcTest {
 protected:
  void request(std::uint32_t psn, std::size_t offset, std::uint32_t dma_bytes = 8,
               std::size_t payload = 8) {
    endpoint.receive(
        make_packet(bth(Opcode::kRcAtomicWrite, psn, true), payload, reth(offset, dma_bytes)));
  }
  void answer(std::uint32_t psn, std::size_t payload = 0) {
    endpoint.receive(make_packet(bth(Opcode::kRcReadResponseOnly, psn), payload,
                                 wire::Aeth{wire::Syndrome::ack(), {1}}));
  }
  void post(std::uint64_t wr_id) {
    endpoint.post_send(qp, {.operation = SendOperation::kAtomicWrite,
                            .wr_id = wr_id,
                            .sges = {endpoint.sge(64, 8)},
                            .remote_address = 0x1000,
                            .rkey = {7}});
  }
  NakCode nak_code() {
    (void)transmits();
    return packets.empty() ? NakCode::kPsnSequence : packets.back().view().aeth.syndrome.nak_code();
  }
};

TEST_F(AtomicWrite, IsAnsweredByAReadResponseOfNoBytes) {
  std::fill_n(endpoint.buffer.begin() + 8, 24, kFill);
  request(kFirstPsn, 16);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseOnly, kFirstPsn}));
  EXPECT_TRUE(packets[0].view().payload.empty());
  EXPECT_TRUE(packets[0].view().aeth.syndrome.is_ack());
  EXPECT_EQ(packets[0].view().aeth.msn.value, 1U);
  EXPECT_EQ(endpoint.buffer[15], kFill);
  EXPECT_NE(endpoint.buffer[16], kFill);
  EXPECT_EQ(endpoint.buffer[24], kFill);
}

// Its answer is kept: what came there since stays.
TEST_F(AtomicWrite, RepeatedItIsAnsweredAndNotCarriedOut) {
  request(kFirstPsn, 16);
  EXPECT_EQ(transmits().size(), 1U);
  std::fill_n(endpoint.buffer.begin() + 16, 8, kFill);
  request(kFirstPsn, 16);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseOnly, kFirstPsn}));
  EXPECT_EQ(endpoint.buffer[16], kFill);
}

struct Shape {
  const char* name;
  std::size_t offset;
  std::uint32_t dma_bytes;
  std::size_t payload;
};
class WrongAtomicWrite : public AtomicWrite, public ::testing::WithParamInterface<Shape> {};

// Case P31, IBTA oA19-28.
TEST_P(WrongAtomicWrite, IsAnInvalidRequestAndWritesNothing) {
  std::fill_n(endpoint.buffer.begin(), 64, kFill);
  request(kFirstPsn, GetParam().offset, GetParam().dma_bytes, GetParam().payload);
  EXPECT_EQ(nak_code(), NakCode::kInvalidRequest);
  EXPECT_EQ(std::count(endpoint.buffer.begin(), endpoint.buffer.begin() + 64, kFill), 64);
}
INSTANTIATE_TEST_SUITE_P(All, WrongAtomicWrite,
                         ::testing::Values(Shape{"nothing", 16, 0, 0}, Shape{"half", 16, 4, 4},
                                           Shape{"two_words", 16, 16, 16},
                                           Shape{"less_than_it_says", 16, 8, 4},
                                           Shape{"more_than_it_says", 16, 8, 12},
                                           Shape{"no_bytes_for_a_word", 16, 8, 0},
                                           Shape{"unaligned", 20, 8, 8}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(AtomicWrite, NeedsARightKey) {
  endpoint.receive(make_packet(bth(Opcode::kRcAtomicWrite, kFirstPsn, true), 8,
                               wire::Reth{endpoint.address(0), {1}, 8}));
  EXPECT_EQ(nak_code(), NakCode::kRemoteAccess);
}

TEST_F(AtomicWrite, IsOnePacketAndCompletesWithItsAnswer) {
  endpoint.buffer[64] = std::byte{0x77};
  post(1);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAtomicWrite, kFirstPsn}));
  const wire::PacketView view = packets[0].view();
  EXPECT_EQ(view.reth, (wire::Reth{0x1000, {7}, 8}));
  EXPECT_EQ(view.payload.size(), 8U);
  EXPECT_EQ(view.payload[0], std::byte{0x77});
  EXPECT_TRUE(view.bth.ack_request);
  EXPECT_FALSE(view.bth.solicited);
  answer(kFirstPsn);
  (void)transmits();
  const auto done = endpoint.poll();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, WcStatus::kSuccess);
  EXPECT_EQ(done->opcode, WcOpcode::kAtomicWrite);
}

TEST_F(AtomicWrite, CountsAsOneOfTheOutstandingReads) {
  for (std::uint64_t i = 0; i < 20; ++i) post(i);
  EXPECT_EQ(transmits().size(), qp.options.max_read_atomic);
  answer(kFirstPsn);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAtomicWrite, kFirstPsn + 16}));
}

// An acknowledgement past it is none of it.
TEST_F(AtomicWrite, IsSentAgainWhenItsAnswerWasLost) {
  post(1);
  post_write(2, 8);
  EXPECT_EQ(transmits().size(), 2U);
  ack(kFirstPsn + 1);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAtomicWrite, kFirstPsn},
                                       Sent{Opcode::kRcWriteOnly, kFirstPsn + 1}));
  EXPECT_THAT(endpoint.poll_all(), IsEmpty());
}

TEST_F(AtomicWrite, AnAnswerWithBytesIsABadOne) {
  post(1);
  (void)transmits();
  answer(kFirstPsn, 8);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kBadResponse);
}

TEST_F(AtomicWrite, OfOtherThanAWordFailsHere) {
  endpoint.post_send(qp, {.operation = SendOperation::kAtomicWrite,
                          .sges = {endpoint.sge(64, 4)},
                          .remote_address = 0x1000,
                          .rkey = {7}});
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalLengthError);
}

TEST(AtomicWritePair, ArrivesOnceUnderEveryLossOfTwo) {
  for (unsigned mask = 0; mask < 64; ++mask) {
    Pair pair(wire_link(), {}, 4096);
    pair.a.buffer[0] = std::byte{0x33};
    pair.a.post_send(pair.qp_a, {.operation = SendOperation::kAtomicWrite,
                                 .sges = {pair.a.sge(0, 8)},
                                 .remote_address = pair.b.address(32),
                                 .rkey = {Endpoint::kKey}});
    ASSERT_TRUE(pair.run([mask](unsigned index, const Packet&) {
      return index < 6 && (mask >> index & 1) != 0 ? 0 : 1;
    }));
    EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess) << mask;
    EXPECT_EQ(pair.b.buffer[32], std::byte{0x33}) << mask;
  }
}

}  // namespace
}  // namespace uroce::test
