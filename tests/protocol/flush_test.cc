// SPDX-License-Identifier: BSD-2-Clause
// A peer's FLUSH (IBTA annex 19), case P44: what it may ask for, and what it is answered.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using memory::Access;
using ::testing::ElementsAre;
using wire::FlushSelectivity;
using wire::NakCode;
using wire::Opcode;

class Flush : public RcTest {
 protected:
  using RcTest::RcTest;
  static constexpr wire::Feth kGlobal{wire::Feth::kGlobalVisibility, FlushSelectivity::kRange};

  void request(std::uint32_t psn, const wire::Feth& feth, const wire::Reth& target) {
    endpoint.receive(make_packet(bth(Opcode::kRcFlush, psn), 0, feth, target));
  }
  NakCode nak_code() {
    (void)transmits();
    return packets.empty() ? NakCode::kPsnSequence : packets.back().view().aeth.syndrome.nak_code();
  }
};

TEST_F(Flush, IsAnsweredByAReadResponseOfNoBytesAfterWhatIsBeforeIt) {
  write_only(kFirstPsn, 0, 8, false);
  request(kFirstPsn + 1, kGlobal, reth(0, 4096));
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseOnly, kFirstPsn + 1}));
  const wire::PacketView view = packets[0].view();
  EXPECT_TRUE(view.payload.empty());
  EXPECT_TRUE(view.aeth.syndrome.is_ack());
  EXPECT_EQ(view.aeth.msn.value, 2U);
  EXPECT_FALSE(view.bth.solicited);
}

TEST_F(Flush, RepeatedItIsAnsweredAgain) {
  for (int i = 0; i < 3; ++i) {
    request(kFirstPsn, kGlobal, reth(0, 4096));
    EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseOnly, kFirstPsn}));
  }
}

// Then address and length say nothing.
TEST_F(Flush, OfAWholeRegionLooksAtTheKeyAlone) {
  request(kFirstPsn, {wire::Feth::kGlobalVisibility, FlushSelectivity::kRegion},
          {0, {Endpoint::kKey}, 0xffff'ffff});
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcReadResponseOnly, kFirstPsn}));
}

TEST_F(Flush, OfARangeStaysInTheRegion) {
  request(kFirstPsn, kGlobal, reth(0, 2 << 20));
  EXPECT_EQ(nak_code(), NakCode::kRemoteAccess);
}

TEST_F(Flush, OfAnUnknownRegionIsRefused) {
  request(kFirstPsn, {wire::Feth::kGlobalVisibility, FlushSelectivity::kRegion}, {0, {1}, 0});
  EXPECT_EQ(nak_code(), NakCode::kRemoteAccess);
}

class UnknownFlush : public Flush, public ::testing::WithParamInterface<wire::Feth> {};
TEST_P(UnknownFlush, IsAnInvalidRequest) {
  request(kFirstPsn, GetParam(), reth(0, 8));
  EXPECT_EQ(nak_code(), NakCode::kInvalidRequest);
}
INSTANTIATE_TEST_SUITE_P(All, UnknownFlush,
                         ::testing::Values(wire::Feth{0, FlushSelectivity::kRange},
                                           wire::Feth{5, FlushSelectivity::kRange},
                                           wire::Feth{8, FlushSelectivity::kRange},
                                           wire::Feth{1, static_cast<FlushSelectivity>(2)},
                                           wire::Feth{1, static_cast<FlushSelectivity>(3)}));

// Nothing of ours outlives the power: the QP may allow it, the region never does.
class PersistentFlush : public Flush {
 protected:
  PersistentFlush()
      : Flush({.access = Access::kRemoteWrite | Access::kFlushGlobal | Access::kFlushPersistent}) {}
};
TEST_F(PersistentFlush, IsRefused) {
  request(kFirstPsn, {wire::Feth::kPersistence, FlushSelectivity::kRange}, reth(0, 8));
  EXPECT_EQ(nak_code(), NakCode::kRemoteAccess);
}

class FlushNotAllowed : public Flush {
 protected:
  FlushNotAllowed() : Flush({.access = Access::kRemoteWrite}) {}
};
TEST_F(FlushNotAllowed, ByTheQpIsAnInvalidRequest) {
  request(kFirstPsn, kGlobal, reth(0, 8));
  EXPECT_EQ(nak_code(), NakCode::kInvalidRequest);
}

}  // namespace
}  // namespace uroce::test
