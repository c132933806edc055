// SPDX-License-Identifier: BSD-2-Clause
// The answers to parts of READs that a peer asks for again, which keeps what comes behind a gap
// (transport/read_gaps.h is that peer).
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Opcode;

class RcReadParts : public RcTest {
 protected:
  // Asks for packets of one READ of 64 packets, which begins at 100.
  void ask(std::uint32_t psn, std::uint32_t count) {
    endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, psn), 0,
                                 reth((psn - kFirstPsn) * kMtu, count * kMtu)));
  }
  std::vector<std::uint32_t> psns() {
    std::vector<std::uint32_t> list;
    for (const Sent& sent : transmits()) list.push_back(sent.psn);
    return list;
  }
  void begin_answer() {
    ask(100, 64);
    endpoint.refuses = true;
    (void)transmits();
    endpoint.refuses = false;
  }
};

TEST_F(RcReadParts, AreAnsweredByPacketsThatBeginAndEnd) {
  ask(100, 64);
  EXPECT_EQ(psns().size(), 64U);
  ask(110, 3);
  ask(120, 1);
  EXPECT_THAT(
      transmits(),
      ElementsAre(Sent{Opcode::kRcReadResponseFirst, 110}, Sent{Opcode::kRcReadResponseMiddle, 111},
                  Sent{Opcode::kRcReadResponseLast, 112}, Sent{Opcode::kRcReadResponseOnly, 120}));
}

// PSNs come round again: what is asked for anew is of the newest READ with such PSNs.
TEST_F(RcReadParts, AreOfTheNewestReadWithTheirPsns) {
  ask(100, 64);
  (void)transmits();
  qp.qp.responder.expected_psn = Psn(110);  // as after 2^24 packets
  const auto read = [&] {
    endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, 110), 0, reth(0, 4 * kMtu)));
    return psns();
  };
  EXPECT_THAT(read(), ElementsAre(110, 111, 112, 113));
  EXPECT_THAT(read(), ElementsAre(110, 111, 112, 113));
}

TEST_F(RcReadParts, GoBeforeAnAnswerThatIsBeingGivenAndItGoesOn) {
  begin_answer();
  ask(100, 2);
  const std::vector<std::uint32_t> sent = psns();
  ASSERT_EQ(sent.size(), 66U);
  EXPECT_EQ(sent[0], 100U);
  EXPECT_EQ(sent[1], 101U);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(sent[i + 2], 100 + i);
}

TEST_F(RcReadParts, StayWhenTheEndIsAskedForToo) {
  ask(100, 64);
  (void)transmits();
  ask(110, 2);
  ask(162, 2);
  EXPECT_THAT(psns(), ElementsAre(110, 111, 162, 163));
}

TEST_F(RcReadParts, AskedForTwiceAreAnsweredOnce) {
  ask(100, 64);
  (void)transmits();
  ask(110, 2);
  ask(110, 2);
  EXPECT_THAT(psns(), ElementsAre(110, 111));
}

TEST_F(RcReadParts, AreSentLaterWhereALinkRefuses) {
  ask(100, 64);
  (void)transmits();
  ask(110, 20);  // two frames
  ask(140, 1);
  endpoint.refuses = true;
  (void)transmits();
  EXPECT_TRUE(endpoint.hca.has_responses_due());
  endpoint.refuses = false;
  const std::vector<std::uint32_t> sent = psns();
  ASSERT_EQ(sent.size(), 21U);
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(sent[i], 110 + i);
  EXPECT_EQ(sent[20], 140U);
  EXPECT_FALSE(endpoint.hca.has_responses_due());
}

TEST_F(RcReadParts, OfMoreThanThereIsRoomForAreDropped) {
  ask(100, 64);
  (void)transmits();
  for (std::uint32_t i = 0; i < 2 * ReadParts::kMax; ++i) ask(100 + i, 1);
  EXPECT_EQ(psns().size(), ReadParts::kMax);
}

TEST_F(RcReadParts, AreDroppedWithTheReadThatTheyAreOf) {
  ask(100, 64);
  (void)transmits();
  ask(110, 1);
  for (std::uint32_t i = 0; i < 16; ++i) {  // max_dest_rd_atomic
    endpoint.receive(make_packet(bth(Opcode::kRcReadRequest, 164 + i), 0, reth(0, kMtu)));
  }
  const std::vector<std::uint32_t> sent = psns();
  EXPECT_EQ(std::ranges::count(sent, 110U), 0);
  EXPECT_EQ(sent.size(), 16U);
}

TEST_F(RcReadParts, OfMemoryThatIsGoneEndTheConnection) {
  ask(100, 64);
  (void)transmits();
  ask(110, 1);
  (void)endpoint.hca.regions().erase(Endpoint::kKey);
  EXPECT_THAT(transmits(), ElementsAre(Sent{Opcode::kRcAcknowledge, 110}));
  EXPECT_EQ(packets.back().view().aeth.syndrome, wire::Syndrome::nak(wire::NakCode::kRemoteAccess));
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

}  // namespace
}  // namespace uroce::test
