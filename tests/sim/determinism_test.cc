// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include "sim/simulation.h"

namespace uroce::sim {
namespace {

TEST(Determinism, TheSameSeedDoesTheSame) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = simulate(draw_scenario(seed));
    const Outcome second = simulate(draw_scenario(seed));
    EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_EQ(first.packets, second.packets) << "seed " << seed;
  }
}

TEST(Determinism, AnotherSeedDoesSomethingElse) {
  EXPECT_NE(simulate(draw_scenario(1)).hash, simulate(draw_scenario(2)).hash);
}

// On every machine. What the transport sends and when is part of it, so a change of that changes
// this number too; then it is written down anew.
TEST(Determinism, TheHashIsKnown) {
  EXPECT_EQ(simulate(draw_scenario(7)).hash, 0x4202'3650'56a2'2802U);
}

TEST(Determinism, ReadingAlongChangesNothing) {
  std::FILE* const nowhere = std::fopen("/dev/null", "w");
  ASSERT_NE(nowhere, nullptr);
  Capture capture(nowhere);
  EXPECT_EQ(simulate(draw_scenario(7), {.trace = nowhere, .capture = &capture}).hash,
            simulate(draw_scenario(7)).hash);
  EXPECT_TRUE(capture.finish());
  std::fclose(nowhere);
}

TEST(Replay, IsOneCommandWithATraceAndACapture) {
  EXPECT_EQ(replay_command(7), "uroce-sim --seed 7 --trace --pcap seed-7.pcapng");
}

}  // namespace
}  // namespace uroce::sim
