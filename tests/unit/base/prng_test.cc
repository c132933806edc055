// SPDX-License-Identifier: BSD-2-Clause
#include "base/prng.h"

#include <gtest/gtest.h>

#include <array>

namespace uroce {
namespace {

// The published generator's first values for seed 0.
TEST(Prng, IsTheSameOnEveryMachine) {
  Prng prng(0);
  EXPECT_EQ(prng.next(), 0xe220'a839'7b1d'cdafU);
  EXPECT_EQ(prng.next(), 0x6e78'9e6a'a1b9'65f4U);
  EXPECT_EQ(prng.next(), 0x06c4'5d18'8009'454fU);
}

TEST(Prng, StaysInRangeAndReachesBothEnds) {
  Prng prng(1);
  std::array<int, 5> seen{};
  for (int i = 0; i < 1000; ++i) ++seen.at(prng.between(3, 7) - 3);
  for (int count : seen) EXPECT_GT(count, 100);
  EXPECT_EQ(prng.between(9, 9), 9U);
}

TEST(Prng, AChanceComesTrueAsOftenAsItSays) {
  Prng prng(2);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += prng.chance(Prng::kMillion / 100) ? 1 : 0;
  EXPECT_NEAR(hits, 1000, 100);
  EXPECT_FALSE(prng.chance(0));
  EXPECT_TRUE(prng.chance(Prng::kMillion));
}

TEST(Prng, SplitsAreApartFromEachOtherAndFromTheirOrigin) {
  Prng prng(3);
  Prng first = prng.split(1), again = prng.split(1), second = prng.split(2);
  const std::uint64_t value = first.next();
  EXPECT_EQ(value, again.next());
  EXPECT_NE(value, second.next());
  EXPECT_NE(value, prng.next());
}

}  // namespace
}  // namespace uroce
