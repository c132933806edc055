// SPDX-License-Identifier: BSD-2-Clause
// A hostile responder against our requester: answers that nobody asked for, too long, too many,
// and acknowledgements of what was never sent. Only the SGEs of the request in hand may change.
#include <algorithm>

#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;
using ::testing::IsEmpty;
using wire::NakCode;
using wire::Opcode;

constexpr std::size_t kTarget = 64 * 1024;

class HostileResponder : public RcTest {
 protected:
  HostileResponder() : before(endpoint.buffer) {}

  void post_read(std::uint32_t bytes) {
    endpoint.post_send(qp, {.operation = SendOperation::kRead,
                            .sges = {endpoint.sge(kTarget, bytes)},
                            .remote_address = 0x1000,
                            .rkey = {7}});
    (void)transmits();
  }
  void answer(Opcode opcode, std::uint32_t psn, std::size_t bytes) {
    if (opcode == Opcode::kRcReadResponseMiddle) {
      endpoint.receive(make_packet(bth(opcode, psn), bytes));
    } else {
      endpoint.receive(make_packet(bth(opcode, psn), bytes, wire::Aeth{wire::Syndrome::ack(), {}}));
    }
  }
  // Nothing has changed but, at most, so many bytes of the target.
  [[nodiscard]] bool is_untouched_but(std::size_t bytes) const {
    const auto* now = endpoint.buffer.data();
    const std::size_t end = kTarget + bytes;
    return std::memcmp(now, before.data(), kTarget) == 0 &&
           std::memcmp(now + end, before.data() + end, before.size() - end) == 0;
  }

  std::vector<std::byte> before;
};

struct Answer {
  const char* name;
  std::uint32_t asked;
  std::vector<std::pair<Opcode, std::size_t>> packets;
};
class HostileAnswers : public HostileResponder, public ::testing::WithParamInterface<Answer> {};

TEST_P(HostileAnswers, AreBadResponses) {
  post_read(GetParam().asked);
  std::uint32_t psn = kFirstPsn;
  for (const auto& [opcode, bytes] : GetParam().packets) answer(opcode, psn++, bytes);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kBadResponse);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
  EXPECT_TRUE(is_untouched_but(GetParam().asked));
}

constexpr Opcode kFirst = Opcode::kRcReadResponseFirst;
constexpr Opcode kMiddle = Opcode::kRcReadResponseMiddle;
constexpr Opcode kLast = Opcode::kRcReadResponseLast;
constexpr Opcode kOnly = Opcode::kRcReadResponseOnly;

INSTANTIATE_TEST_SUITE_P(
    Kinds, HostileAnswers,
    ::testing::Values(Answer{"MoreThanAsked", 8, {{kOnly, 12}}},
                      Answer{"LessThanAsked", 12, {{kOnly, 8}}},
                      Answer{"MoreThanAPathMtu", 2048, {{kOnly, 2048}}},
                      Answer{"EndsEarly", 3072, {{kFirst, 1024}, {kLast, 1024}}},
                      Answer{"DoesNotEnd", 2048, {{kFirst, 1024}, {kMiddle, 1024}}},
                      Answer{"ShortMiddle", 3072, {{kFirst, 1024}, {kMiddle, 512}}},
                      Answer{"LongLast", 1028, {{kFirst, 1024}, {kLast, 1024}}},
                      Answer{"EmptyLast", 1028, {{kFirst, 1024}, {kLast, 0}}}),
    [](const auto& kind) { return std::string(kind.param.name); });

TEST_F(HostileResponder, AnswersAfterTheLastAreStale) {
  post_read(1024);
  answer(kOnly, kFirstPsn, 1024);
  for (std::uint32_t i = 0; i < 100; ++i) answer(kOnly, kFirstPsn + i, 1024);
  (void)transmits();
  EXPECT_EQ(endpoint.poll_all().size(), 1U);
  EXPECT_EQ(endpoint.hca.counters().rx_stale_response, 100U);
  EXPECT_TRUE(is_untouched_but(1024));
}

TEST_F(HostileResponder, DataForAWriteIsNotTaken) {
  post_write(1, 2048);
  (void)transmits();
  for (const Opcode opcode : {kFirst, kMiddle, kLast, kOnly}) answer(opcode, kFirstPsn, 1024);
  endpoint.receive(make_packet(bth(Opcode::kRcAtomicAcknowledge, kFirstPsn), 0,
                               wire::Aeth{wire::Syndrome::ack(), {}}, wire::AtomicAckEth{1}));
  EXPECT_FALSE(endpoint.poll());
  EXPECT_TRUE(is_untouched_but(0));
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
}

TEST_F(HostileResponder, AnAtomicsAnswerIsNotAReads) {
  post_read(1024);
  endpoint.receive(make_packet(bth(Opcode::kRcAtomicAcknowledge, kFirstPsn), 0,
                               wire::Aeth{wire::Syndrome::ack(), {}}, wire::AtomicAckEth{1}));
  EXPECT_FALSE(endpoint.poll());
  EXPECT_TRUE(is_untouched_but(0));
}

TEST_F(HostileResponder, AnswersDoNotReachMemoryThatWasTakenBack) {
  post_read(1024);
  EXPECT_TRUE(endpoint.hca.regions().erase(Endpoint::kKey));
  answer(kOnly, kFirstPsn, 1024);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalProtectionError);
  EXPECT_TRUE(is_untouched_but(0));
}

TEST_F(HostileResponder, AcknowledgementsOfWhatWasNeverSentAreStale) {
  post_write(1, 8);
  (void)transmits();
  for (const std::uint32_t psn : {kFirstPsn + 1, kFirstPsn - 1, kFirstPsn + 0x80'0000, 0U}) {
    ack(psn);
    nak(psn, NakCode::kRemoteAccess);
    rnr(psn, 1);
  }
  EXPECT_EQ(endpoint.hca.counters().rx_stale_response, 12U);
  EXPECT_FALSE(endpoint.poll());
  EXPECT_THAT(transmits(), IsEmpty());
  ack(kFirstPsn);
  (void)transmits();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kSuccess);
}

// The standard reserves them; they are dropped, and the timer decides.
TEST_F(HostileResponder, ReservedSyndromesAreDropped) {
  post_write(1, 8);
  (void)transmits();
  for (unsigned value = 0; value < 256; ++value) {
    const wire::Syndrome syndrome{static_cast<std::uint8_t>(value)};
    if (!syndrome.is_known()) aeth(kFirstPsn, syndrome);
  }
  EXPECT_THAT(transmits(), IsEmpty());
  EXPECT_FALSE(endpoint.poll());
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
}

TEST_F(HostileResponder, AFloodOfNaksIsOneRestart) {
  post_write(1, 8 * kMtu);
  EXPECT_EQ(transmits().size(), 8U);
  std::size_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    nak(kFirstPsn, NakCode::kPsnSequence);
    sent += transmits().size();
  }
  EXPECT_LE(sent, 8U);
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
}

TEST_F(HostileResponder, AFloodOfRnrNaksIsOneWait) {
  endpoint.post_send(qp, {.sges = {endpoint.sge(0, 8)}});
  (void)transmits();
  for (int i = 0; i < 1000; ++i) rnr(kFirstPsn, 31);
  pass(microseconds(491'519));
  EXPECT_THAT(transmits(), IsEmpty());
  pass(microseconds(1));
  EXPECT_EQ(transmits().size(), 1U);
}

}  // namespace
}  // namespace uroce::test
