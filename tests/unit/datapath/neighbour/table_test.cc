// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/table.h"

#include <gtest/gtest.h>

#include "datapath/neighbour/address.h"

namespace uroce::datapath {
namespace {

constexpr MacAddress kMac{{2, 0, 0, 0, 0, 7}};
constexpr NeighbourTable::Timing kTiming;

Gid address(std::uint32_t n) {
  return ipv4_mapped({10, 0, static_cast<std::uint8_t>(n >> 8), static_cast<std::uint8_t>(n)});
}

TEST(NeighbourTable, AsksAtOnceThenSlowerAndSlower) {
  NeighbourTable table(kTiming);
  const auto index = table.want(address(1));
  ASSERT_TRUE(index);
  Instant now{1'000};
  const auto first = table.poll_question(now);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->address, address(1));
  EXPECT_EQ(first->last_known, nullptr);
  EXPECT_FALSE(table.poll_question(now));
  for (const std::int64_t pause_ms : {50, 100, 200, 400, 800, 1'000, 1'000}) {
    EXPECT_FALSE(table.poll_question(now + milliseconds(pause_ms) + nanoseconds(-1)));
    now = now + milliseconds(pause_ms);
    EXPECT_TRUE(table.poll_question(now)) << pause_ms;
  }
  EXPECT_EQ(table.find(*index), nullptr);
}

// A neighbour that answers late loses nothing that nobody repeats; one that is gone holds up
// nothing for ever.
TEST(NeighbourTable, AnAnswerIsExpectedForASecond) {
  NeighbourTable table(kTiming);
  const auto index = table.want(address(1));
  ASSERT_TRUE(index);
  EXPECT_TRUE(table.is_expected(*index));
  Instant now{0};
  for (const std::int64_t pause_ms : {0, 50, 100, 200, 400, 800}) {
    EXPECT_TRUE(table.is_expected(*index));
    now = now + milliseconds(pause_ms);
    ASSERT_TRUE(table.poll_question(now));
  }
  EXPECT_FALSE(table.is_expected(*index));
  table.on_answer(now, address(1), kMac);
  EXPECT_FALSE(table.is_expected(*index));
  EXPECT_NE(table.find(*index), nullptr);
}

TEST(NeighbourTable, AnAnswerResolvesAndIsConfirmedLater) {
  NeighbourTable table(kTiming);
  const auto index = table.want(address(1));
  ASSERT_TRUE(table.poll_question(Instant{0}));
  table.on_answer(Instant{5}, address(1), kMac);
  ASSERT_NE(table.find(*index), nullptr);
  EXPECT_EQ(*table.find(*index), kMac);
  EXPECT_FALSE(table.poll_question(Instant{5} + kTiming.reachable_for + nanoseconds(-1)));
  const auto again = table.poll_question(Instant{5} + kTiming.reachable_for);
  ASSERT_TRUE(again);
  ASSERT_NE(again->last_known, nullptr);  // asked directly, and used meanwhile
  EXPECT_EQ(*again->last_known, kMac);
  EXPECT_NE(table.find(*index), nullptr);
}

TEST(NeighbourTable, ThreeUnansweredQuestionsLoseAStaleNeighbour) {
  NeighbourTable table(kTiming);
  const auto index = table.want(address(1));
  table.on_answer(Instant{0}, address(1), kMac);
  Instant now = Instant{0} + kTiming.reachable_for;
  for (unsigned i = 0; i < NeighbourTable::kQuestionsWhileStale; ++i) {
    ASSERT_TRUE(table.poll_question(now)) << i;
    EXPECT_NE(table.find(*index), nullptr) << i;
    now = now + kTiming.last_pause;
  }
  const auto question = table.poll_question(now);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->last_known, nullptr);
  EXPECT_EQ(table.find(*index), nullptr);
}

TEST(NeighbourTable, StrangersAndGroupAddressesChangeNothing) {
  NeighbourTable table(kTiming);
  const auto index = table.want(address(1));
  table.on_answer(Instant{0}, address(2), kMac);
  table.on_answer(Instant{0}, address(1), kBroadcast);
  EXPECT_EQ(table.find(*index), nullptr);
  EXPECT_EQ(table.want(address(2)), *index + 1);  // was not in it
  EXPECT_EQ(table.find(*index + 1), nullptr);
}

TEST(NeighbourTable, ReleasedEntriesAreNotAskedForAndMakePlace) {
  NeighbourTable table(kTiming);
  for (std::uint32_t i = 0; i < NeighbourTable::kCapacity; ++i) ASSERT_TRUE(table.want(address(i)));
  EXPECT_FALSE(table.want(address(5'000)));
  EXPECT_EQ(table.want(address(3)), 3u);
  table.release(3);
  EXPECT_FALSE(table.want(address(5'000)));  // its other user is still there
  table.release(3);
  EXPECT_EQ(table.want(address(5'000)), 3u);
  for (std::uint32_t i = 0; i < NeighbourTable::kCapacity; ++i) table.release(i);
  EXPECT_FALSE(table.poll_question(Instant{1}));
}

}  // namespace
}  // namespace uroce::datapath
