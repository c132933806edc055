// SPDX-License-Identifier: BSD-2-Clause
// How a connection ends (IBTA 12.9.5, 12.9.9): DREQ, DREP, and a while for late packets to be gone.
#include <cerrno>

#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

constexpr char kActiveLife[] = "reply, disconnected, time-wait exit";
constexpr char kPassiveLife[] = "request, established, disconnected, time-wait exit";

class CmTeardown : public ::testing::Test {
 protected:
  CmTeardown() {
    active = &left.connect();
    world.run_for(seconds(1));
    passive = &right.newest();
  }
  void lose(Attribute attribute, std::size_t times) {
    network.loses = [=, seen = std::size_t{0}](std::size_t, const Mad& mad) mutable {
      return mad.attribute() == attribute && seen++ < times;
    };
  }
  void expect_over() {
    ASSERT_TRUE(world.run_out());
    EXPECT_EQ(left.of(*active), kActiveLife);
    EXPECT_EQ(right.of(*passive), kPassiveLife);
    EXPECT_TRUE(left.is_quiet());
    EXPECT_TRUE(right.is_quiet());
  }
  World world;
  Side& left = world.left;
  Side& right = world.right;
  Network& network = world.network;
  Connection* active = nullptr;
  Connection* passive = nullptr;
};

TEST_F(CmTeardown, ByTheActiveSide) {
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  EXPECT_EQ(left.manager.disconnect(world.now, *active), EINVAL);
  EXPECT_EQ(left.of(*active), "reply");
  world.run_for(milliseconds(1));
  EXPECT_EQ(left.of(*active), "reply, disconnected");
  EXPECT_EQ(right.of(*passive), "request, established, disconnected");
  expect_over();
}

TEST_F(CmTeardown, ByThePassiveSide) {
  EXPECT_EQ(right.manager.disconnect(world.now, *passive), 0);
  expect_over();
}

TEST_F(CmTeardown, ByBothAtOnce) {
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  EXPECT_EQ(right.manager.disconnect(world.now, *passive), 0);
  expect_over();
}

TEST_F(CmTeardown, WaitsForLatePacketsForASecond) {
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  world.run_for(milliseconds(900));
  EXPECT_EQ(active->state, State::kTimeWait);
  EXPECT_EQ(passive->state, State::kTimeWait);
  EXPECT_TRUE(left.manager.is_used(active->local_id));
  world.run_for(milliseconds(200));
  EXPECT_EQ(active->state, State::kIdle);
  EXPECT_FALSE(left.manager.is_used(active->local_id));
}

TEST_F(CmTeardown, AsksAgainWhenItsRequestIsLost) {
  lose(Attribute::kDisconnectRequest, 3);
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  expect_over();
  EXPECT_EQ(world.count(Attribute::kDisconnectRequest), 4U);
}

TEST_F(CmTeardown, IsAnsweredAgainWhenTheAnswerIsLost) {
  lose(Attribute::kDisconnectReply, 3);
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  expect_over();
  EXPECT_EQ(world.count(Attribute::kDisconnectReply), 4U);
}

TEST_F(CmTeardown, ThatNobodyAnswersSaysSo) {
  lose(Attribute::kDisconnectRequest, 100);
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  world.run_for(seconds(14));
  EXPECT_EQ(left.of(*active), "reply");
  world.run_for(seconds(3));
  EXPECT_EQ(left.of(*active), kActiveLife);
  for (const Seen& one : left.seen) {
    const bool is_end = one.kind == EventKind::kDisconnected;
    EXPECT_EQ(one.reason, is_end ? Reason::kTimeout : Reason::kNone);
  }
}

// After the wait too: whoever has forgotten the connection has ended it.
TEST_F(CmTeardown, IsAnsweredByWhoKnowsNothingOfIt) {
  network.loses = [](std::size_t, const Mad&) { return true; };
  right.manager.forget(world.now, *passive);
  network.loses = nullptr;
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  world.run_for(milliseconds(1));
  EXPECT_EQ(left.of(*active), "reply, disconnected");
}

TEST_F(CmTeardown, EndsWithoutAnAnswerToo) {
  network.loses = [](std::size_t, const Mad&) { return true; };
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  world.run_for(seconds(20));
  EXPECT_EQ(left.of(*active), kActiveLife);
  EXPECT_EQ(world.count(Attribute::kDisconnectRequest), 8U);
  EXPECT_EQ(right.of(*passive), "request, established");
}

TEST_F(CmTeardown, OfAnotherQueuePairIsIgnored) {
  DisconnectRequestWire wire;
  wire.local_id = Be32(active->local_id);
  wire.remote_id = Be32(passive->local_id);
  wire.remote_qpn = Be24_8(passive->local.qpn.value + 1, 0);
  Mad mad;
  mad.set(Attribute::kDisconnectRequest, 1, wire);
  world.inject(mad);
  EXPECT_EQ(passive->state, State::kEstablished);
  EXPECT_EQ(world.count(Attribute::kDisconnectReply), 0U);
}

// A late reply, from before: the ready message is not at hand any more, and nobody needs it.
TEST_F(CmTeardown, IgnoresWhatIsLateFromTheHandshake) {
  std::vector<Mad> handshake = world.sent;
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  world.run_for(milliseconds(10));
  const Route to_left = {.source = left.gid(), .destination = right.gid()};
  left.manager.on_mad(world.now, to_left, handshake[1]);
  left.manager.on_mad(world.now, to_left, handshake[2]);
  world.inject(handshake[3]);
  expect_over();
}

// A request that its peer sent before it knew: told to begin anew, it does not ask for long.
TEST_F(CmTeardown, ARequestThatComesWhileWeWaitIsStale) {
  const Mad request = world.sent[0];
  EXPECT_EQ(left.manager.disconnect(world.now, *active), 0);
  world.run_for(milliseconds(10));
  const std::size_t before = world.sent.size();
  world.inject(request);
  ASSERT_EQ(world.sent.size(), before + 1);
  EXPECT_EQ(world.sent.back().attribute(), Attribute::kReject);
  EXPECT_EQ(world.sent.back().as<RejectWire>().reason.get(),
            static_cast<int>(Reason::kStaleConnection));
  expect_over();
}

// --- By a passive side that has accepted, but not heard that its peer knows
// -----------------------

class CmEarlyTeardown : public ::testing::Test {
 protected:
  World world;
  Side& left = world.left;
  Side& right = world.right;
};

TEST_F(CmEarlyTeardown, OfALostReadyEndsBothSides) {
  world.network.loses = [](std::size_t, const Mad& mad) {
    return mad.attribute() == Attribute::kReady;
  };
  Connection& active = left.connect();
  world.run_for(milliseconds(50));
  EXPECT_EQ(right.manager.disconnect(world.now, right.newest()), 0);
  ASSERT_TRUE(world.run_out());
  EXPECT_EQ(left.of(active), kActiveLife);
  EXPECT_EQ(right.of(right.newest()), "request, disconnected, time-wait exit");
}

TEST_F(CmEarlyTeardown, BeforeThePeerIsReadyIsARefusal) {
  left.habits.is_ready = false;
  Connection& active = left.connect();
  world.run_for(milliseconds(50));
  EXPECT_EQ(right.manager.disconnect(world.now, right.newest()), 0);
  ASSERT_TRUE(world.run_out());
  EXPECT_EQ(left.of(active), "reply, rejected");
  EXPECT_EQ(left.manager.ready(active, {}), EINVAL);
  EXPECT_EQ(right.of(right.newest()), "request, disconnected, time-wait exit");
  EXPECT_TRUE(left.is_quiet());
}

TEST_F(CmEarlyTeardown, OfALostReplyIsARefusal) {
  world.network.loses = [](std::size_t, const Mad& mad) {
    return mad.attribute() == Attribute::kReply;
  };
  const Connection& active = left.connect();
  world.run_for(milliseconds(50));
  EXPECT_EQ(right.manager.disconnect(world.now, right.newest()), 0);
  ASSERT_TRUE(world.run_out());
  EXPECT_EQ(left.of(active), "rejected");
  EXPECT_EQ(right.connections.size(), 1U);
  EXPECT_TRUE(left.is_quiet());
}

}  // namespace
}  // namespace uroce::cm::test
