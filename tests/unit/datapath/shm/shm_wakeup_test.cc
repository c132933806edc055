// SPDX-License-Identifier: BSD-2-Clause
// Sleeping and being woken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <thread>

#include "support/cancelled.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "unit/datapath/shm/shm_end.h"

namespace uroce::datapath {
namespace {

using test::Child;
using test::TemporaryFolder;

using testing::ElementsAre;

bool is_readable(ShmEnd& end, int timeout_ms = 0) {
  pollfd one{.fd = end.link().wakeup_descriptor(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, timeout_ms) == 1;
}

struct ShmWakeup : testing::Test {
  TemporaryFolder folder;
  ShmEnd a{folder.path()}, b{folder.path()};
  Path path = a.path_to(b.qpn());

  void SetUp() override {
    EXPECT_THAT(a.receive(), testing::IsEmpty());
    EXPECT_THAT(b.receive(), testing::IsEmpty());  // takes the offer
  }
};

TEST_F(ShmWakeup, AnAwakePeerIsNotWoken) {
  EXPECT_TRUE(a.send(path, 1));
  EXPECT_FALSE(is_readable(b));
  EXPECT_EQ(a.link().counters().wakeups_sent, 0u);
}

TEST_F(ShmWakeup, ASleepingPeerIsWokenOnceHoweverMuchIsSent) {
  ASSERT_TRUE(b.link().arm_wakeup());
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_TRUE(a.send(path, i));
  EXPECT_TRUE(is_readable(b));
  EXPECT_EQ(a.link().counters().wakeups_sent, 1u);
  b.link().disarm_wakeup();
  EXPECT_FALSE(is_readable(b));
  EXPECT_EQ(b.receive().size(), 10u);
}

// The shard's lock would stay taken (man 7 pthreads).
TEST_F(ShmWakeup, IsNoCancellationPoint) {
  ASSERT_TRUE(b.link().arm_wakeup());
  const auto send = [this] { EXPECT_TRUE(a.send(path, 1)); };
  EXPECT_TRUE(test::is_no_cancellation_point(send));
  EXPECT_TRUE(is_readable(b));
  const auto disarm = [this] { b.link().disarm_wakeup(); };
  EXPECT_TRUE(test::is_no_cancellation_point(disarm));
}

TEST_F(ShmWakeup, ArmingFindsWhatIsThereAlready) {
  EXPECT_TRUE(a.send(path, 1));
  EXPECT_FALSE(b.link().arm_wakeup());
  b.link().disarm_wakeup();
  EXPECT_THAT(b.receive(), ElementsAre(1));
  EXPECT_TRUE(b.link().arm_wakeup());
}

// The application polls in between: the wake-up is its helper's, which everybody takes for awake.
TEST_F(ShmWakeup, APollLeavesTheWakeUpOfASleepingHelperAlone) {
  ASSERT_TRUE(b.link().arm_wakeup());
  EXPECT_TRUE(a.send(path, 1));
  b.link().begin_turn(Datapath::Turn::kApplication);
  EXPECT_THAT(b.receive(), ElementsAre(1));
  EXPECT_THAT(b.receive(), testing::IsEmpty());
  EXPECT_TRUE(is_readable(b));
  b.link().disarm_wakeup();
  EXPECT_FALSE(is_readable(b));
}

TEST_F(ShmWakeup, ANewRingWakesToo) {
  ShmEnd c(folder.path());
  ASSERT_TRUE(b.link().arm_wakeup());
  const Path from_c = c.path_to(b.qpn());
  EXPECT_TRUE(is_readable(b));
  b.link().disarm_wakeup();
  EXPECT_TRUE(c.send(from_c, 5));
  EXPECT_THAT(b.receive(), ElementsAre(5));
}

TEST_F(ShmWakeup, APeerThatIsAwakeButDoesNotReadIsWokenEverMoreSeldom) {
  EXPECT_TRUE(a.send(path, 1));
  a.link().on_turn({1'000});
  a.link().on_turn({8'000});
  EXPECT_FALSE(is_readable(b));
  a.link().on_turn({22'000});
  EXPECT_TRUE(is_readable(b));
  EXPECT_EQ(a.link().counters().wakeups_sent, 1u);
  for (std::int64_t now = 23'000; now < 1'000'000; now += 1'000) a.link().on_turn({now});
  EXPECT_LE(a.link().counters().wakeups_sent, 8u);
  EXPECT_THAT(b.receive(), ElementsAre(1));
  EXPECT_FALSE(is_readable(b));
}

TEST_F(ShmWakeup, APeerThatReadsIsLeftAlone) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(a.send(path, i));
    a.link().on_turn({i * 50'000 + 1});
    EXPECT_THAT(b.receive(), ElementsAre(i));
    EXPECT_THAT(b.receive(), testing::IsEmpty());
    a.link().on_turn({i * 50'000 + 40'000});
  }
  EXPECT_EQ(a.link().counters().wakeups_sent, 0u);
}

// A helper's answers to a program that polls: it reads them by itself, and a system call would come
// between two other programs.
struct ShmWakeupPutOff : ShmWakeup {
  void SetUp() override {
    ShmWakeup::SetUp();
    b.link().begin_turn(Datapath::Turn::kApplication);
    ASSERT_TRUE(b.link().arm_wakeup());
  }
  void send_in_helpers_turn(std::uint32_t number, std::int64_t now) {
    a.link().begin_turn(Datapath::Turn::kHelper);
    EXPECT_TRUE(a.send(path, number));
    a.link().on_turn({now});
  }
};

TEST_F(ShmWakeupPutOff, WhoPollsIsNotWokenAtOnce) {
  send_in_helpers_turn(1, 1'000);
  EXPECT_TRUE(a.link().arm_wakeup());
  EXPECT_FALSE(is_readable(b));
  EXPECT_EQ(a.link().next_look(), Instant{51'000});
  EXPECT_THAT(b.receive(), ElementsAre(1));
  a.link().on_turn({51'000});
  EXPECT_EQ(a.link().next_look(), Instant::never());
  EXPECT_EQ(a.link().counters().wakeups_sent, 0u);
}

TEST_F(ShmWakeupPutOff, WhoHasNotReadByThenIsWoken) {
  send_in_helpers_turn(1, 1'000);
  a.link().begin_turn(Datapath::Turn::kHelper);
  a.link().on_turn({51'000});
  EXPECT_TRUE(a.link().arm_wakeup());
  EXPECT_TRUE(is_readable(b));
}

// What it has not read yet it may have been too slow for, and its helper sleeps: we look again.
TEST_F(ShmWakeupPutOff, WhoHasReadSomeButNotAllIsLookedAtAgain) {
  send_in_helpers_turn(1, 1'000);
  send_in_helpers_turn(2, 1'000);
  EXPECT_THAT(b.receive(1), ElementsAre(1));
  EXPECT_THAT(b.receive(1), ElementsAre(2));  // gives the first record back, not yet the second
  a.link().begin_turn(Datapath::Turn::kHelper);
  a.link().on_turn({51'000});
  EXPECT_TRUE(a.link().arm_wakeup());
  const Instant again = a.link().next_look();
  ASSERT_NE(again, Instant::never());
  EXPECT_FALSE(is_readable(b));
  a.link().disarm_wakeup();
  a.link().on_turn(again);
  EXPECT_TRUE(is_readable(b));
}

TEST_F(ShmWakeupPutOff, WhoReadsIsGivenNewTimeByEachFrame) {
  send_in_helpers_turn(1, 1'000);
  EXPECT_THAT(b.receive(), ElementsAre(1));
  EXPECT_THAT(b.receive(), testing::IsEmpty());  // gives the record back
  send_in_helpers_turn(2, 40'000);
  a.link().on_turn({60'000});
  EXPECT_FALSE(is_readable(b));
  EXPECT_EQ(a.link().next_look(), Instant{90'000});
}

TEST_F(ShmWakeupPutOff, WhoReadsNothingIsWokenHoweverMuchIsSentToIt) {
  for (std::int64_t now = 1'000; now <= 51'000; now += 10'000) send_in_helpers_turn(1, now);
  EXPECT_TRUE(is_readable(b));
}

TEST_F(ShmWakeupPutOff, AFullRingWakesAtOnce) {
  a.link().begin_turn(Datapath::Turn::kHelper);
  std::uint32_t count = 0;
  while (a.send(path, count, 60'000)) ++count;
  EXPECT_GT(count, 1u);
  EXPECT_TRUE(is_readable(b));
}

TEST_F(ShmWakeupPutOff, WhoHasStoppedPollingIsWokenAtOnce) {
  send_in_helpers_turn(1, 1'000);
  EXPECT_THAT(b.receive(), ElementsAre(1));
  a.link().on_turn({51'000});
  send_in_helpers_turn(2, 60'000);
  EXPECT_TRUE(is_readable(b));
}

TEST_F(ShmWakeupPutOff, WhoWaitsToBeToldIsWokenAtOnce) {
  b.link().application_waits(true);
  b.link().begin_turn(Datapath::Turn::kApplication);
  send_in_helpers_turn(1, 1'000);
  EXPECT_TRUE(is_readable(b));
}

TEST_F(ShmWakeupPutOff, AnApplicationWakesAtOnce) {
  a.link().begin_turn(Datapath::Turn::kApplication);
  EXPECT_TRUE(a.send(path, 1));
  EXPECT_TRUE(is_readable(b));
}

TEST_F(ShmWakeup, ASenderThatGoesToSleepWakesWhoHasNotRead) {
  EXPECT_TRUE(a.send(path, 1));
  EXPECT_TRUE(a.link().arm_wakeup());
  EXPECT_TRUE(is_readable(b));
  a.link().disarm_wakeup();
  EXPECT_TRUE(a.link().arm_wakeup());
  EXPECT_EQ(a.link().counters().wakeups_sent, 1u);
}

// Waits as an engine does; nobody sends it anything by another way, so a lost wake-up ends the test
// by the time limit of poll.
bool receive_asleep(ShmEnd& end, std::uint32_t wanted) {
  for (;;) {
    const auto got = end.receive();
    if (!got.empty()) return got.size() == 1 && got[0] == wanted;
    const bool may_sleep = end.link().arm_wakeup();
    const bool was_woken = !may_sleep || is_readable(end, 20'000);
    end.link().disarm_wakeup();
    if (!was_woken) return false;
  }
}

constexpr std::uint32_t kStressRounds = test::kSanitized ? 1'000 : 5'000;

// Both sides sleep whenever there is nothing: every wake-up matters.
bool play(ShmEnd& end, const Path& way, bool begins) {
  for (std::uint32_t i = 0; i < kStressRounds; ++i) {
    if (begins && !end.send(way, i)) return false;
    if (!receive_asleep(end, i)) return false;
    if (!begins && !end.send(way, i)) return false;
  }
  return true;
}

TEST_F(ShmWakeup, NoWakeUpIsLostBetweenThreads) {
  const Path back = b.path_to(a.qpn());
  bool other_is_well = false;
  std::thread other([&] { other_is_well = play(b, back, false); });
  EXPECT_TRUE(play(a, path, true));
  other.join();
  EXPECT_TRUE(other_is_well);
  EXPECT_LE(a.link().counters().wakeups_sent, 2 * kStressRounds);
}

TEST_F(ShmWakeup, NoWakeUpIsLostBetweenProcesses) {
  Child child([&](Child& self) {
    ShmEnd c(folder.path());
    self.tell(c.qpn().value);
    const Path back = c.path_to(Qpn{static_cast<std::uint32_t>(self.hear())});
    self.tell(play(c, back, false) ? 1 : 0);
    (void)self.hear();
  });
  const Path out = a.path_to(Qpn{static_cast<std::uint32_t>(child.hear())});
  child.tell(a.qpn().value);
  EXPECT_TRUE(play(a, out, true));
  EXPECT_EQ(child.hear(), 1u);
}

TEST_F(ShmWakeup, NoWakeUpIsLostWhereSendersMustFence) {
  const Path back = b.path_to(a.qpn());
  a.directory().mailbox(a.directory().own_slot().index).senders_must_fence.store(1);
  b.directory().mailbox(b.directory().own_slot().index).senders_must_fence.store(1);
  bool other_is_well = false;
  std::thread other([&] { other_is_well = play(b, back, false); });
  EXPECT_TRUE(play(a, path, true));
  other.join();
  EXPECT_TRUE(other_is_well);
}

}  // namespace
}  // namespace uroce::datapath
