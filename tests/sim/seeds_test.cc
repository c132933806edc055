// SPDX-License-Identifier: BSD-2-Clause
// Large scope: seeds that are the same each time, a few that nobody has tried, and those that once
// found something.
#include <gtest/gtest.h>

#include <cinttypes>
#include <fstream>
#include <random>
#include <sstream>

#include "sim/simulation.h"

namespace uroce::sim {
namespace {

void run_seed(std::uint64_t seed) {
  const Outcome outcome = simulate(draw_scenario(seed));
  EXPECT_EQ(outcome.violation, "") << "replay: " << replay_command(seed);
}

class Seeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, NothingIsViolated) {
  constexpr std::uint64_t kSeeds = 100;
  for (std::uint64_t i = 0; i < kSeeds; ++i) run_seed(GetParam() * kSeeds + i);
}

INSTANTIATE_TEST_SUITE_P(Hundred, Seeds, testing::Range<std::uint64_t>(0, 10));

TEST(FreshSeeds, NothingIsViolated) {
  std::random_device random;
  const std::uint64_t first = std::uint64_t{random()} << 16;
  std::printf("seeds from %" PRIu64 "\n", first);
  for (std::uint64_t i = 0; i < 50; ++i) run_seed(first + i);
}

TEST(RegressionSeeds, NothingIsViolated) {
  std::ifstream file(UROCE_REGRESSION_SEEDS);
  ASSERT_TRUE(file.is_open());
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    SCOPED_TRACE(line);
    std::uint64_t seed = 0;
    ASSERT_TRUE(std::istringstream(line) >> seed);
    run_seed(seed);
  }
}

}  // namespace
}  // namespace uroce::sim
