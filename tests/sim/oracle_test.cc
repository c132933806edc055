// SPDX-License-Identifier: BSD-2-Clause
// The oracle is of use only if it sees what is wrong. So wrongs are done, one at a time, in runs
// without any other fault, and each must be found.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/simulation.h"

namespace uroce::sim {
namespace {

Scenario quiet_scenario(std::uint64_t seed) {
  Scenario s = draw_scenario(seed);
  const LinkOptions drawn = s.uplink;
  s.uplink = LinkOptions{};
  s.uplink.delay = drawn.delay;
  s.uplink.bits_per_second = drawn.bits_per_second;
  for (NodeOptions& node : s.node) node = NodeOptions{};
  s.unreliable_connections = s.datagram_ends = 0;  // what is missing there may have been lost
  s.disturb = s.poison = s.late_poll = s.late_receive = 0;
  s.requests = std::max<std::uint32_t>(s.requests, 60);
  s.retry_min = s.rnr_retry_min = 7;
  s.timeout_min = s.timeout_max = 18;
  s.is_impatient = s.may_fail = false;
  s.time_to_finish = milliseconds(2'000);
  return s;
}

// Or nothing would be wrong with it.
TEST(OtherServices, BringSomething) {
  Arrivals sum;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Arrivals arrivals = simulate(draw_scenario(seed)).arrivals;
    sum.over_connections += arrivals.over_connections;
    sum.datagrams += arrivals.datagrams;
    sum.to_group += arrivals.to_group;
    sum.to_group_from_here += arrivals.to_group_from_here;
  }
  EXPECT_GT(sum.over_connections, 1'000U);
  EXPECT_GT(sum.datagrams, 1'000U);
  EXPECT_GT(sum.to_group, 100U);
  EXPECT_GT(sum.to_group_from_here, 20U);
}

class Wrongs : public testing::TestWithParam<Sabotage> {};

TEST_P(Wrongs, AreFound) {
  unsigned done = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Scenario s = quiet_scenario(seed);
    ASSERT_EQ(simulate(s).violation, "") << "seed " << seed << " without a wrong";
    s.sabotage = GetParam();
    const Outcome outcome = simulate(s);
    if (!outcome.was_sabotaged) continue;
    ++done;
    EXPECT_NE(outcome.violation, "") << "seed " << seed;
  }
  EXPECT_GE(done, 5U);
}

INSTANTIATE_TEST_SUITE_P(Each, Wrongs,
                         testing::Values(Sabotage::kFlippedPayload, Sabotage::kLostCompletion,
                                         Sabotage::kRepeatedCompletion, Sabotage::kStrayByte,
                                         Sabotage::kRepeatedAtomic, Sabotage::kForgottenReceive));

}  // namespace
}  // namespace uroce::sim
