// SPDX-License-Identifier: BSD-2-Clause
// The clock of turns over counters that tests move as they like.
#include "engine/clock.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace uroce::engine {
namespace {

// A counter and the monotonic clock, a microsecond at a time.
class Machine {
 public:
  explicit Machine(std::uint64_t ticks_a_microsecond) : rate_(ticks_a_microsecond) {}

  void pass(std::int64_t microseconds) {
    ns_ += microseconds * 1'000;
    ticks_ += rate_ * static_cast<std::uint64_t>(microseconds);
  }
  void jump(std::uint64_t ticks) { ticks_ += ticks; }
  void set_rate(std::uint64_t ticks_a_microsecond) { rate_ = ticks_a_microsecond; }
  std::int64_t error_ns() {
    Instant now{};
    if (clock_.is_reading_due(ticks_)) {
      ++readings;
      now = clock_.take_reading(ticks_, {ns_}, ticks_);
    } else {
      now = clock_.between_readings(ticks_);
    }
    return now.ns < ns_ ? ns_ - now.ns : now.ns - ns_;
  }
  // The clock is never far off (what a slower processor takes for half a millisecond), and right as
  // soon as it knows the rate.
  void expect_right() {
    for (int i = 0; i < 20'000; ++i) {
      pass(1);
      ASSERT_LE(error_ns(), 2'500'000) << i;
    }
    readings = 0;
    for (int i = 0; i < 20'000; ++i) {
      pass(1);
      ASSERT_LE(error_ns(), 5'000) << i;
    }
    EXPECT_LE(readings, 50);
  }

  int readings = 0;

 private:
  std::uint64_t rate_;
  std::uint64_t ticks_ = std::uint64_t{1} << 50;
  std::int64_t ns_ = 1'000'000'000;
  TurnClock clock_;
};

class AnyRate : public testing::TestWithParam<std::uint64_t> {};

TEST_P(AnyRate, IsLearnedAndFollowed) {
  Machine machine(GetParam());
  machine.expect_right();
  machine.pass(5'000'000);  // nobody asks for long
  machine.expect_right();
}

TEST_P(AnyRate, CountersThatJumpAreNotBelieved) {
  for (const std::uint64_t ticks :
       {-std::uint64_t{1}, -(std::uint64_t{1} << 20), -(std::uint64_t{1} << 49),
        std::uint64_t{1} << 20, std::uint64_t{1} << 45, std::uint64_t{1} << 63}) {
    Machine machine(GetParam());
    machine.expect_right();
    machine.jump(ticks);
    machine.expect_right();
    // At the moment of a reading as well, between which and the last one enough time has passed.
    machine.pass(400);
    machine.jump(ticks);
    machine.expect_right();
  }
}

TEST_P(AnyRate, AnotherProcessorsRateIsLearnedAnew) {
  Machine machine(GetParam());
  machine.expect_right();
  machine.set_rate(GetParam() > 1'000 ? GetParam() / 5 : GetParam() * 5);
  machine.expect_right();
}

INSTANTIATE_TEST_SUITE_P(TurnClock, AnyRate, testing::Values(1, 24, 100, 1'000, 2'100, 5'000));

TEST(TurnClock, WithoutACounterEveryTimeIsRead) {
  Machine machine(0);
  for (int i = 0; i < 5'000; ++i) {
    machine.pass(1);
    ASSERT_EQ(machine.error_ns(), 0);
  }
  EXPECT_EQ(machine.readings, 5'000);
}

}  // namespace
}  // namespace uroce::engine
