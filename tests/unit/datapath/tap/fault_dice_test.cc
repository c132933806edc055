// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/fault_dice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace uroce::datapath::tap {
namespace {

constexpr std::size_t kDraws = 200'000;

std::vector<FaultFate> fates(const FaultSpec& spec, std::size_t count = kDraws) {
  FaultDice dice(spec);
  std::vector<FaultFate> result(count);
  std::ranges::generate(result, [&] { return dice.next(); });
  return result;
}

double share(const std::vector<FaultFate>& all, bool (*is_so)(const FaultFate&)) {
  return static_cast<double>(std::ranges::count_if(all, is_so)) / static_cast<double>(all.size());
}

bool is_lost(const FaultFate& fate) { return fate.is_lost(); }

TEST(FaultDice, WithoutFaultsEveryPacketArrives) {
  for (const FaultFate& fate : fates({}, 1'000)) EXPECT_EQ(fate, FaultFate{});
}

TEST(FaultDice, EachKindComesAtItsRate) {
  const auto all =
      fates({.loss = 50'000, .duplicate = 100'000, .reorder = 20'000, .corrupt = 10'000});
  EXPECT_NEAR(share(all, is_lost), 0.05, 0.003);
  EXPECT_NEAR(share(all, [](const FaultFate& f) { return f.copies == 2; }), 0.095, 0.003);
  EXPECT_NEAR(share(all, [](const FaultFate& f) { return f.overtaken_by != 0; }), 0.02, 0.002);
  EXPECT_NEAR(share(all, [](const FaultFate& f) { return f.is_corrupt; }), 0.01, 0.001);
}

TEST(FaultDice, AllIsLostWhereAllIsToBeLost) {
  for (const std::uint32_t burst : {1u, 7u}) {
    EXPECT_EQ(share(fates({.loss = 1'000'000, .burst = burst}), is_lost), 1.0);
  }
}

TEST(FaultDice, BurstsLoseTheSameShareInOnePiece) {
  const auto all = fates({.loss = 50'000, .burst = 10});
  EXPECT_NEAR(share(all, is_lost), 0.05, 0.01);
  for (std::size_t i = 0, run = 0; i < all.size() - 10; ++i) {
    if (all[i].is_lost()) {
      ++run;
    } else {
      EXPECT_EQ(run % 10, 0u) << i;
      run = 0;
    }
  }
}

TEST(FaultDice, DelaysFillTheirRangeAndStayInIt) {
  const auto all = fates({.delay_min = microseconds(50), .delay_max = milliseconds(2)});
  const auto [least, most] = std::ranges::minmax(all, {}, &FaultFate::delay);
  EXPECT_GE(least.delay, microseconds(50));
  EXPECT_LE(most.delay, milliseconds(2));
  EXPECT_LT(least.delay, microseconds(51));
  EXPECT_GT(most.delay, microseconds(1'999));
  for (const FaultFate& fate :
       fates({.delay_min = nanoseconds(9), .delay_max = nanoseconds(9)}, 9)) {
    EXPECT_EQ(fate.delay, nanoseconds(9));
  }
}

TEST(FaultDice, ALatePacketFallsBackAFewPlaces) {
  const auto all = fates({.reorder = 1'000'000});
  const auto [least, most] = std::ranges::minmax(all, {}, &FaultFate::overtaken_by);
  EXPECT_EQ(least.overtaken_by, 1);
  EXPECT_EQ(most.overtaken_by, kOvertakenByMax);
}

TEST(FaultDice, TheSeedDecides) {
  FaultSpec spec{.loss = 50'000, .corrupt = 50'000, .delay_max = milliseconds(1), .seed = 7};
  const auto all = fates(spec);
  EXPECT_EQ(all, fates(spec));
  spec.seed = 8;
  EXPECT_NE(all, fates(spec));
}

TEST(FaultDice, MoreOfOneKindDoesNotMoveAnother) {
  const auto few = fates({.loss = 50'000, .corrupt = 1'000, .seed = 7}, 10'000);
  const auto many = fates({.loss = 50'000,
                           .duplicate = 500'000,
                           .reorder = 500'000,
                           .corrupt = 500'000,
                           .delay_max = milliseconds(1),
                           .seed = 7},
                          10'000);
  EXPECT_TRUE(std::ranges::equal(few, many, {}, &FaultFate::is_lost, &FaultFate::is_lost));
}

// Whoever replays a seed relies on it.
TEST(FaultDice, IsTheSameOnEveryMachine) {
  const auto all = fates({.loss = 100'000, .seed = 7}, 100);
  std::vector<std::size_t> lost;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].is_lost()) lost.push_back(i);
  }
  EXPECT_EQ(lost, (std::vector<std::size_t>{0, 7, 14, 16, 68, 79, 82}));
}

TEST(FaultDice, TheNetworkIsGoodAfterSoManyPackets) {
  const auto all = fates({.loss = 1'000'000, .delay_max = milliseconds(1), .packets = 10}, 30);
  EXPECT_EQ(std::ranges::count_if(all, is_lost), 10);
  EXPECT_EQ(all[10], FaultFate{});
}

}  // namespace
}  // namespace uroce::datapath::tap
