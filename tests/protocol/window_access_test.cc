// SPDX-License-Identifier: BSD-2-Clause
// Peers that come through memory windows, and SENDs that invalidate them.
#include "protocol/windows.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::NakCode;
using wire::Opcode;

class WindowAccess : public WindowFixture {
 protected:
  void send_with_invalidate(RKey key, std::uint32_t psn) {
    endpoint.receive(
        make_packet(bth(Opcode::kRcSendOnlyInvalidate, psn, true), 8, wire::Ieth{key}));
  }
  void read_through(RKey key, std::uint32_t psn) {
    endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, psn), 0,
                                 wire::Reth{endpoint.address(256), key, 2 * 128}));
  }
};

TEST_F(WindowAccess, IsAllowedInsideOfABoundWindow) {
  bind(variant(kType1, 1));
  write_through(variant(kType1, 1), kFirstPsn);
  read_through(variant(kType1, 1), kFirstPsn + 1);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseOnly, kFirstPsn + 1}));
}

TEST_F(WindowAccess, EndsWithTheNextBinding) {
  bind(variant(kType1, 1));
  bind(variant(kType1, 2));
  write_through(variant(kType1, 1), kFirstPsn);
  EXPECT_EQ(nak_code(), NakCode::kRemoteAccess);
}

TEST_F(WindowAccess, OfAnotherQpToAType2WindowIsRefused) {
  bind(variant(kType2, 1));
  TestQp& other = endpoint.add_qp({0x102});
  endpoint.to_init(other);
  endpoint.to_rtr(other, kPeer, Psn(kFirstPsn));
  wire::Bth to_other = bth(Opcode::kRcWriteOnly, kFirstPsn, true);
  to_other.destination = {0x102};
  endpoint.receive(
      make_packet(to_other, 8, wire::Reth{endpoint.address(256), variant(kType2, 1), 8}));
  EXPECT_EQ(nak_code(), NakCode::kRemoteAccess);
  write_through(variant(kType2, 1), kFirstPsn);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn}));
}

// Case P70.
TEST_F(WindowAccess, ASendWithInvalidateEndsItAndTheReceiveSaysSo) {
  bind(variant(kType2, 1));
  endpoint.post_receive(qp, 7, {endpoint.sge(0, 64)});
  send_with_invalidate(variant(kType2, 1), kFirstPsn);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn}));
  const auto done = endpoint.poll();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->wr_id, 7U);
  EXPECT_EQ(done->status, WcStatus::kSuccess);
  EXPECT_EQ(done->byte_count, 8U);
  EXPECT_EQ(done->flags, wc_flag::kWithInvalidate);
  EXPECT_EQ(done->immediate, variant(kType2, 1).value);
  write_through(variant(kType2, 1), kFirstPsn + 1);
  EXPECT_EQ(nak_code(), NakCode::kRemoteAccess);
}

TEST_F(WindowAccess, ASendWithInvalidateWaitsForAReceive) {
  bind(variant(kType2, 1));
  send_with_invalidate(variant(kType2, 1), kFirstPsn);
  (void)transmits();
  EXPECT_EQ(packets.back().view().aeth.syndrome.kind(), wire::SyndromeKind::kRnrNak);
  write_through(variant(kType2, 1), kFirstPsn);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn}));
}

class NotInvalidated : public WindowAccess, public ::testing::WithParamInterface<RKey> {};

TEST_P(NotInvalidated, TheSendIsRefusedAndTheKeyStays) {
  bind(variant(kType1, 1));
  endpoint.post_receive(qp, 7, {endpoint.sge(0, 64)});
  send_with_invalidate(GetParam(), kFirstPsn);
  EXPECT_EQ(nak_code(), NakCode::kRemoteAccess);
  const auto done = endpoint.poll();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, WcStatus::kRemoteInvalidRequest);
  EXPECT_NE(endpoint.hca.regions().find(Endpoint::kKey), nullptr);
  EXPECT_EQ(endpoint.hca.regions().find(variant(kType1, 1).value)->length, 256U);
}
INSTANTIATE_TEST_SUITE_P(All, NotInvalidated,
                         ::testing::Values(RKey{Endpoint::kKey},  // an ordinary region
                                           variant(kType1, 1),    // type 1
                                           variant(kType2, 9),    // a variant it has not
                                           RKey{0xdead'beef}));   // nothing

TEST_F(WindowAccess, ARepeatedSendWithInvalidateIsNotCarriedOutAgain) {
  bind(variant(kType2, 1));
  endpoint.post_receive(qp, 7, {endpoint.sge(0, 64)});
  endpoint.post_receive(qp, 8, {endpoint.sge(0, 64)});
  send_with_invalidate(variant(kType2, 1), kFirstPsn);
  (void)transmits();
  EXPECT_TRUE(endpoint.poll());
  bind(variant(kType2, 1));  // the same key again
  send_with_invalidate(variant(kType2, 1), kFirstPsn);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn}));
  EXPECT_FALSE(endpoint.poll());
  write_through(variant(kType2, 1), kFirstPsn + 1);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, kFirstPsn + 1}));
}

// Both in one burst: the READ takes effect first, though its answer is made later.
TEST_F(WindowAccess, AReadBeforeTheInvalidationIsAnswered) {
  bind(variant(kType2, 1));
  endpoint.post_receive(qp, 7, {endpoint.sge(0, 64)});
  endpoint.buffer[256] = std::byte{0x5a};
  read_through(variant(kType2, 1), kFirstPsn);
  send_with_invalidate(variant(kType2, 1), kFirstPsn + 1);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseOnly, kFirstPsn},
                                       Sent{Opcode::kRcAcknowledge, kFirstPsn + 1}));
  EXPECT_EQ(packets[0].view().payload[0], std::byte{0x5a});
}

// The same of what the peer asks for once more, in time.
TEST_F(WindowAccess, APartOfAReadBeforeTheInvalidationIsAnswered) {
  const RKey key = variant(kType2, 1);
  endpoint.post_send(
      qp,
      {.operation = SendOperation::kBindWindow,
       .rkey = key,
       .part = {{Endpoint::kKey}, endpoint.address(256), 3 * kMtu, memory::Access::kRemoteRead}});
  EXPECT_THAT(transmits(), IsEmpty());
  endpoint.post_receive(qp, 7, {endpoint.sge(0, 64)});
  endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, kFirstPsn), 0,
                               wire::Reth{endpoint.address(256), key, 3 * kMtu}));
  EXPECT_EQ(transmits().size(), 3U);
  endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, kFirstPsn + 1), 0,
                               wire::Reth{endpoint.address(256 + kMtu), key, kMtu}));
  send_with_invalidate(key, kFirstPsn + 3);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseOnly, kFirstPsn + 1},
                                       Sent{Opcode::kRcAcknowledge, kFirstPsn + 3}));
}

// A peer that gives a key up while it may still have to ask again has only itself to blame.
TEST_F(WindowAccess, AReadRepeatedAfterTheInvalidationIsRefused) {
  bind(variant(kType2, 1));
  endpoint.post_receive(qp, 7, {endpoint.sge(0, 64)});
  read_through(variant(kType2, 1), kFirstPsn);
  send_with_invalidate(variant(kType2, 1), kFirstPsn + 1);
  EXPECT_EQ(transmits().size(), 2U);
  read_through(variant(kType2, 1), kFirstPsn);
  EXPECT_EQ(nak_code(), NakCode::kRemoteAccess);
}

TEST_F(WindowAccess, SendWithInvalidateCarriesTheKeyInItsLastPacket) {
  const auto post = [this](std::uint32_t bytes) {
    endpoint.post_send(qp, {.operation = SendOperation::kSendWithInvalidate,
                            .sges = {endpoint.sge(0, bytes)},
                            .rkey = {0xabcd'ef01}});
  };
  post(8);
  post(1025);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcSendOnlyInvalidate, kFirstPsn},
                                       Sent{Opcode::kRcSendFirst, kFirstPsn + 1},
                                       Sent{Opcode::kRcSendLastInvalidate, kFirstPsn + 2}));
  EXPECT_EQ(packets[0].view().ieth.rkey, RKey{0xabcd'ef01});
  EXPECT_EQ(packets[2].view().ieth.rkey, RKey{0xabcd'ef01});
  EXPECT_EQ(packets[2].view().payload.size(), 1U);
  ack(kFirstPsn + 2);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->opcode, WcOpcode::kSend);
}

}  // namespace
}  // namespace uroce::test
