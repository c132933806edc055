// SPDX-License-Identifier: BSD-2-Clause
#include "engine/sleep_policy.h"

#include <gtest/gtest.h>

namespace uroce::engine {
namespace {

using State = SleepPolicy::State;
using Cause = SleepPolicy::Cause;

constexpr Duration kJustNow = microseconds(1);
constexpr Duration kLongAgo = milliseconds(10);

State woken_in_vain(SleepPolicy& policy) {
  return policy.after({Cause::kArrival, false, kJustNow});
}

SleepPolicy ticking() {
  SleepPolicy policy;
  for (int i = 0; i < SleepPolicy::kUselessWakeupsMax; ++i) woken_in_vain(policy);
  return policy;
}

TEST(SleepPolicy, BeginsArmed) { EXPECT_EQ(SleepPolicy().state(), State::kArmed); }

TEST(SleepPolicy, TicksOnceThePollerHasTakenThePacketsBeforeUsSeveralTimes) {
  SleepPolicy policy;
  for (int i = 1; i < SleepPolicy::kUselessWakeupsMax; ++i) {
    EXPECT_EQ(woken_in_vain(policy), State::kArmed);
  }
  EXPECT_EQ(woken_in_vain(policy), State::kTicking);
}

TEST(SleepPolicy, AUsefulWakeUpBeginsTheCountAgain) {
  SleepPolicy policy;
  for (int i = 1; i < SleepPolicy::kUselessWakeupsMax; ++i) woken_in_vain(policy);
  policy.after({Cause::kArrival, true, kJustNow});
  EXPECT_EQ(woken_in_vain(policy), State::kArmed);
}

TEST(SleepPolicy, AnEmptyWakeUpIsNoSignOfPollingWhenNobodyPolled) {
  SleepPolicy policy;
  for (int i = 0; i < 10; ++i) policy.after({Cause::kArrival, false, kLongAgo});
  EXPECT_EQ(policy.state(), State::kArmed);
}

TEST(SleepPolicy, KeepsTickingWhileTheApplicationPolls) {
  SleepPolicy policy = ticking();
  EXPECT_EQ(policy.after({Cause::kOther, true, kJustNow}), State::kTicking);
}

TEST(SleepPolicy, ArmsAgainWhenTheApplicationHasStoppedPolling) {
  SleepPolicy policy = ticking();
  EXPECT_EQ(policy.after({Cause::kOther, false, kLongAgo}), State::kArmed);
}

TEST(SleepPolicy, ArmsAtOnceWhenTheApplicationSaysThatItWillSleep) {
  SleepPolicy policy = ticking();
  policy.application_will_sleep();
  EXPECT_EQ(policy.state(), State::kArmed);
}

TEST(SleepPolicy, OnALinkWithoutWakeUpTheLastTurnDecides) {
  SleepPolicy policy;
  EXPECT_EQ(policy.after({Cause::kTimer, false, kLongAgo}), State::kArmed);
  EXPECT_EQ(policy.after({Cause::kTimer, false, kJustNow}), State::kTicking);
}

}  // namespace
}  // namespace uroce::engine
