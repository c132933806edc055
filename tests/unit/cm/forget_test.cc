// SPDX-License-Identifier: BSD-2-Clause
// An application that leaves in the middle: whoever waits for its answer gets one at once, and
// nothing of the connection stays.
#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

class CmForget : public ::testing::Test {
 protected:
  void forget(Side& side, Connection& connection) {
    const std::uint32_t id = connection.local_id;
    side.manager.forget(world.now, connection);
    EXPECT_EQ(connection.state, State::kIdle);
    EXPECT_FALSE(side.manager.is_used(id));
    EXPECT_FALSE(connection.timer_hook.is_linked());
    world.run_for(milliseconds(10));
  }
  World world;
  Side& left = world.left;
  Side& right = world.right;
};

TEST_F(CmForget, WhatNeverBeganIsNothing) {
  Connection connection;
  left.manager.forget(world.now, connection);
  EXPECT_TRUE(world.sent.empty());
}

TEST_F(CmForget, ARequestIsTakenBack) {
  right.habits.accepts = false;
  Connection& active = left.connect();
  world.run_for(milliseconds(10));
  forget(left, active);
  EXPECT_EQ(right.of(right.newest()), "request, rejected");
  EXPECT_EQ(right.last().reason, Reason::kTimeout);
  EXPECT_TRUE(right.is_quiet());
}

TEST_F(CmForget, AQuestionIsAnsweredWithNo) {
  right.habits.accepts = false;
  const Connection& active = left.connect();
  world.run_for(milliseconds(10));
  forget(right, right.newest());
  EXPECT_EQ(left.of(active), "rejected");
  EXPECT_EQ(left.last().reason, Reason::kConsumer);
}

TEST_F(CmForget, AReplyIsRefused) {
  left.habits.is_ready = false;
  Connection& active = left.connect();
  world.run_for(milliseconds(10));
  forget(left, active);
  EXPECT_EQ(right.of(right.newest()), "request, rejected");
  EXPECT_TRUE(right.is_quiet());
}

TEST_F(CmForget, AReplyIsTakenBack) {
  left.habits.is_ready = false;
  const Connection& active = left.connect();
  world.run_for(milliseconds(10));
  forget(right, right.newest());
  EXPECT_EQ(left.of(active), "reply, rejected");
  EXPECT_TRUE(left.is_quiet());
}

// The active side is there already, but its ready message was lost.
TEST_F(CmForget, AReplyIsTakenBackFromWhoIsReady) {
  world.network.loses = [](std::size_t, const Mad& mad) {
    return mad.attribute() == Attribute::kReady;
  };
  const Connection& active = left.connect();
  world.run_for(milliseconds(10));
  forget(right, right.newest());
  EXPECT_EQ(left.of(active), "reply, rejected");
  EXPECT_EQ(active.state, State::kTimeWait);
}

TEST_F(CmForget, WhatIsEstablishedIsEnded) {
  for (const bool by_active : {true, false}) {
    Connection& active = left.connect();
    world.run_for(milliseconds(10));
    Connection& passive = right.newest();
    if (by_active) {
      forget(left, active);
      EXPECT_EQ(right.of(passive), "request, established, disconnected");
    } else {
      forget(right, passive);
      EXPECT_EQ(left.of(active), "reply, disconnected");
    }
    ASSERT_TRUE(world.run_out());
  }
}

TEST_F(CmForget, WhatIsEndingEnds) {
  Connection& active = left.connect();
  world.run_for(milliseconds(10));
  EXPECT_EQ(left.manager.disconnect(world.now, active), 0);
  forget(left, active);
  EXPECT_EQ(right.of(right.newest()), "request, established, disconnected");
  EXPECT_EQ(left.of(active), "reply");
  forget(right, right.newest());
  EXPECT_EQ(right.of(right.newest()), "request, established, disconnected");
}

TEST_F(CmForget, ASeekerIsAnsweredWithNo) {
  right.habits.answers_sidr = false;
  const Connection& seeker = left.resolve();
  world.run_for(milliseconds(10));
  forget(right, right.newest());
  EXPECT_EQ(left.of(seeker), "SIDR reply");
  EXPECT_EQ(left.last().sidr_status, SidrStatus::kReject);
}

TEST_F(CmForget, ASearchIsOver) {
  right.habits.answers_sidr = false;
  Connection& seeker = left.resolve();
  world.run_for(milliseconds(10));
  forget(left, seeker);
  EXPECT_EQ(right.manager.reply_to_sidr(right.newest(), SidrStatus::kValid, {1}, 1, {}), 0);
  world.run_for(milliseconds(10));
  EXPECT_EQ(left.of(seeker), "");
}

// Then a connection may be freed, in the middle of the timers of others too.
TEST_F(CmForget, LeavesTheTimersOfOthersAlone) {
  world.network.loses = [](std::size_t, const Mad&) { return true; };
  Connection& first = left.connect();
  Connection& second = left.connect();
  Connection& third = left.connect();
  forget(left, second);
  EXPECT_TRUE(left.manager.is_used(first.local_id));
  world.run_for(seconds(60));
  EXPECT_EQ(left.of(first), "unreachable");
  EXPECT_EQ(left.of(second), "");
  EXPECT_EQ(left.of(third), "unreachable");
}

}  // namespace
}  // namespace uroce::cm::test
