// SPDX-License-Identifier: BSD-2-Clause
// The responder against a scripted requester: gaps, wrong order, wrong keys, wrong lengths.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::NakCode;
using wire::Opcode;

class RcResponderTest : public RcTest {
 protected:
  Sent acknowledge(std::uint32_t psn) { return {Opcode::kRcAcknowledge, psn}; }
  wire::Syndrome syndrome() { return packets.back().view().aeth.syndrome; }
  void expect_nak(std::uint32_t psn, NakCode code) {
    EXPECT_THAT(transmits(), ElementsAre(acknowledge(psn)));
    EXPECT_EQ(syndrome(), wire::Syndrome::nak(code));
  }
  void expect_error(EventType type) {
    EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
    const auto event = endpoint.event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->type, type);
  }
};

// IBTA C9-106, case P12.
TEST_F(RcResponderTest, NaksOnceForAGapAndThenStaysSilent) {
  write_only(101, 0, 8);
  expect_nak(100, NakCode::kPsnSequence);
  write_only(102, 0, 8);
  EXPECT_THAT(transmits(), IsEmpty());
  write_only(100, 0, 8);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(102)));
  write_only(104, 0, 8);
  expect_nak(103, NakCode::kPsnSequence);
}

// IBTA C9-105, case P20.
TEST_F(RcResponderTest, AcknowledgesDuplicatesWithTheLatestPsnAndDoesNotExecuteThem) {
  write_only(100, 0, 8);
  write_only(101, 64, 8);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(101)));
  std::memset(endpoint.buffer.data(), 0xee, 8);
  write_only(100, 0, 8);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(101)));
  EXPECT_EQ(endpoint.buffer[0], std::byte{0xee});
}

TEST_F(RcResponderTest, CoalescesAcknowledgements) {
  for (std::uint32_t psn = 100; psn < 120; ++psn) write_only(psn, 0, 8);
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(119)));
  EXPECT_EQ(packets.back().view().aeth.msn.value, 20U);
}

TEST_F(RcResponderTest, StaysSilentWithoutAckRequest) {
  write_only(100, 0, 8, false);
  EXPECT_THAT(transmits(), IsEmpty());
}

// Cases P24, P25.
TEST_F(RcResponderTest, WrongKeyIsARemoteAccessError) {
  endpoint.receive(make_packet(bth(Opcode::kRcWriteOnly, 100), 8,
                               wire::Reth{endpoint.address(0), {0xbad00}, 8}));
  expect_nak(100, NakCode::kRemoteAccess);
  expect_error(EventType::kQpAccessError);
}

// Case P56.
TEST_F(RcResponderTest, RangeThatWrapsIsARemoteAccessError) {
  endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, 100), 0,
                               wire::Reth{0xffff'ffff'ffff'fc00, {Endpoint::kKey}, 0x400}));
  expect_nak(100, NakCode::kRemoteAccess);
}

// Case P32.
TEST_F(RcResponderTest, UnalignedAtomicIsAnInvalidRequest) {
  endpoint.receive(make_packet(bth(Opcode::kRcFetchAdd, 100), 0,
                               wire::AtomicEth{endpoint.address(4), {Endpoint::kKey}, 1, 0}));
  expect_nak(100, NakCode::kInvalidRequest);
  expect_error(EventType::kQpRequestError);
}

// Case P33.
TEST_F(RcResponderTest, ReceiveTooShort) {
  endpoint.post_receive(qp, 4, {endpoint.sge(0, 63)});
  endpoint.receive(make_packet(bth(Opcode::kRcSendOnly, 100), 64));
  expect_nak(100, NakCode::kInvalidRequest);
  const auto entry = endpoint.poll();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->wr_id, 4U);
  EXPECT_EQ(entry->status, WcStatus::kLocalLengthError);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

TEST_F(RcResponderTest, NotReadyNamesTheTimerAndWaitsForTheSamePsn) {
  endpoint.receive(make_packet(bth(Opcode::kRcSendOnly, 100), 8));
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(100)));
  EXPECT_EQ(syndrome(), wire::Syndrome::rnr_nak(12));
  endpoint.receive(make_packet(bth(Opcode::kRcSendOnly, 101), 8));
  EXPECT_THAT(transmits(), IsEmpty());
  endpoint.post_receive(qp, 4, {endpoint.sge(0, 64)});
  endpoint.receive(make_packet(bth(Opcode::kRcSendOnly, 100, true), 8));
  EXPECT_THAT(transmits(), ElementsAre(acknowledge(100)));
  EXPECT_EQ(endpoint.poll()->wr_id, 4U);
}

struct Sequence {
  const char* name;
  std::vector<std::pair<Opcode, std::size_t>> packets;  // the last one is refused
};

class RcOrder : public RcResponderTest, public ::testing::WithParamInterface<Sequence> {};

// Cases P29, P36.
TEST_P(RcOrder, IsAnInvalidRequest) {
  endpoint.post_receive(qp, 1, {endpoint.sge(0, 100'000)});
  std::uint32_t psn = 100;
  for (auto [opcode, bytes] : GetParam().packets) {
    const bool has_reth = wire::opcode_info(opcode).reth;
    endpoint.receive(has_reth ? make_packet(bth(opcode, psn), bytes, reth(0, 4096))
                              : make_packet(bth(opcode, psn), bytes));
    ++psn;
  }
  expect_nak(psn - 1, NakCode::kInvalidRequest);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

INSTANTIATE_TEST_SUITE_P(
    All, RcOrder,
    ::testing::Values(
        Sequence{"MiddleWithoutFirst", {{Opcode::kRcSendMiddle, 1024}}},
        Sequence{"LastWithoutFirst", {{Opcode::kRcWriteLast, 10}}},
        Sequence{"FirstInMessage", {{Opcode::kRcSendFirst, 1024}, {Opcode::kRcSendFirst, 1024}}},
        Sequence{"SendMiddleInWrite",
                 {{Opcode::kRcWriteFirst, 1024}, {Opcode::kRcSendMiddle, 1024}}},
        Sequence{"OnlyAbovePathMtu", {{Opcode::kRcSendOnly, 1028}}},
        Sequence{"FirstBelowPathMtu", {{Opcode::kRcSendFirst, 1020}}},
        Sequence{"EmptyLast", {{Opcode::kRcSendFirst, 1024}, {Opcode::kRcSendLast, 0}}},
        Sequence{"WriteShorterThanItsLength",
                 {{Opcode::kRcWriteFirst, 1024}, {Opcode::kRcWriteLast, 1024}}},
        Sequence{"WriteOnlyShorterThanItsLength", {{Opcode::kRcWriteOnly, 100}}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(RcResponderTest, OperationThatTheQpDoesNotAllowIsAnInvalidRequest) {
  QpAttributes attributes;
  attributes.access = memory::Access::kRemoteRead;
  ASSERT_EQ(endpoint.modify(qp, attributes, qp_attribute::kAccessFlags), 0);
  write_only(100, 0, 8);
  expect_nak(100, NakCode::kInvalidRequest);
}

TEST_F(RcResponderTest, MoreReadsThanAgreedAreAnInvalidRequest) {
  for (std::uint32_t i = 0; i <= qp.options.max_dest_read_atomic; ++i) {
    endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, 100 + i), 0, reth(0, 8)));
  }
  const auto sent = transmits();
  ASSERT_EQ(sent.size(), qp.options.max_dest_read_atomic + 1U);
  EXPECT_EQ(sent.back(), acknowledge(100U + qp.options.max_dest_read_atomic));
  EXPECT_EQ(syndrome(), wire::Syndrome::nak(NakCode::kInvalidRequest));
}

}  // namespace
}  // namespace uroce::test
