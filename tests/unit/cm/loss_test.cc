// SPDX-License-Identifier: BSD-2-Clause
// Bad networks: every way to lose the first eight messages, and thousands of random ones. Whatever
// is lost, both sides end with the same view, each application is told a story that makes sense,
// and nothing stays behind.
#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

constexpr std::size_t kMasked = 8;
constexpr std::size_t kMasks = 1 << kMasked;

// Of the messages from now on, those that the mask names are lost.
void lose_by_mask(World& world, std::size_t mask) {
  const std::size_t first = world.sent.size();
  world.network.loses = [=](std::size_t number, const Mad&) {
    return number - first < kMasked && (mask >> (number - first) & 1) != 0;
  };
}

TEST(CmLossMasks, HandshakeEndsEstablished) {
  for (std::size_t mask = 0; mask < kMasks; ++mask) {
    SCOPED_TRACE(mask);
    World world;
    lose_by_mask(world, mask);
    const Connection& active = world.left.connect("hello");
    ASSERT_TRUE(world.run_out());
    ASSERT_EQ(world.right.connections.size(), 1U);
    const Connection& passive = world.right.newest();
    EXPECT_EQ(world.left.of(active), "reply");
    EXPECT_EQ(world.right.of(passive), "request, established");
    EXPECT_EQ(active.remote_id, passive.local_id);
    EXPECT_EQ(passive.remote_id, active.local_id);
  }
}

TEST(CmLossMasks, SlowApplicationIsWaitedFor) {
  for (std::size_t mask = 0; mask < kMasks; ++mask) {
    SCOPED_TRACE(mask);
    World world;
    lose_by_mask(world, mask);
    world.right.habits.accepts = false;
    const Connection& active = world.left.connect();
    world.run_for(seconds(30));
    ASSERT_EQ(world.right.connections.size(), 1U);
    world.right.accept(world.right.newest());
    ASSERT_TRUE(world.run_out());
    EXPECT_EQ(world.left.of(active), "reply");
    EXPECT_EQ(world.right.of(world.right.newest()), "request, established");
  }
}

TEST(CmLossMasks, TeardownEndsBothSides) {
  for (std::size_t mask = 0; mask < kMasks; ++mask) {
    for (const unsigned who : {1U, 2U, 3U}) {
      SCOPED_TRACE(mask);
      World world;
      Connection& active = world.left.connect();
      world.run_for(seconds(1));
      Connection& passive = world.right.newest();
      lose_by_mask(world, mask);
      const int by_left = (who & 1) != 0 ? world.left.manager.disconnect(world.now, active) : 0;
      const int by_right = (who & 2) != 0 ? world.right.manager.disconnect(world.now, passive) : 0;
      EXPECT_EQ(by_left | by_right, 0);
      ASSERT_TRUE(world.run_out());
      // Eight requests are sent at most: where all were lost, the other side was told nothing.
      const bool is_told = mask != kMasks - 1;
      EXPECT_EQ(world.left.of(active),
                (who & 1) != 0 || is_told ? "reply, disconnected, time-wait exit" : "reply");
      EXPECT_EQ(world.right.of(passive), (who & 2) != 0 || is_told
                                             ? "request, established, disconnected, time-wait exit"
                                             : "request, established");
    }
  }
}

// A refusal is sent once. Where it is lost, the request comes again, and is refused again.
TEST(CmLossMasks, RefusalIsHeardOfInTheEnd) {
  for (std::size_t mask = 0; mask < kMasks; ++mask) {
    SCOPED_TRACE(mask);
    World world;
    Manager::stop_listening(world.listener);
    lose_by_mask(world, mask);
    const Connection& active = world.left.connect();
    ASSERT_TRUE(world.run_out());
    EXPECT_EQ(world.left.of(active), "rejected");
    EXPECT_EQ(world.left.last().reason, Reason::kInvalidServiceId);
    EXPECT_TRUE(world.left.is_quiet());
  }
}

TEST(CmLossMasks, SidrIsAnsweredInTheEnd) {
  for (std::size_t mask = 0; mask < kMasks; ++mask) {
    SCOPED_TRACE(mask);
    World world;
    lose_by_mask(world, mask);
    const Connection& seeker = world.left.resolve();
    ASSERT_TRUE(world.run_out());
    EXPECT_EQ(world.left.of(seeker), "SIDR reply");
    EXPECT_TRUE(world.left.is_quiet());
    EXPECT_TRUE(world.right.is_quiet());
  }
}

// The peer is gone for good after `heard` messages.
TEST(CmLossMasks, SilenceFromAnyMessageOnIsBounded) {
  for (std::size_t heard = 0; heard < 4; ++heard) {
    SCOPED_TRACE(heard);
    World world;
    world.network.loses = [=](std::size_t number, const Mad&) { return number >= heard; };
    const Connection& active = world.left.connect();
    const Instant begin = world.now;
    ASSERT_TRUE(world.run_out());
    EXPECT_LT((world.now - begin).ns, seconds(1'800).ns);
    EXPECT_EQ(world.left.of(active), heard < 3 ? "unreachable" : "reply");
    if (heard > 0) {
      EXPECT_EQ(world.right.of(world.right.newest()), "request, unreachable");
    }
    EXPECT_TRUE(world.right.is_quiet());
  }
}

// --- At random
// ------------------------------------------------------------------------------------

// One world of a seed: several connections, made at random times by applications that take their
// time, ended by either side or both.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : prng_(seed), world_(seed) {
    world_.network.lost = prng_.between(10'000, 200'000);
    world_.network.doubled = prng_.between(0, 100'000);
    world_.network.longest = milliseconds(prng_.between(1, 60));
    world_.right.habits.accepts = world_.left.habits.is_ready = false;
  }

  void run() {
    for (int i = 0; i < 4; ++i) {
      world_.after(pause(), [this] { begin(); });
    }
    ASSERT_TRUE(world_.run_out());
    check();
  }

 private:
  Duration pause() { return milliseconds(prng_.between(0, 400)); }

  void begin() {
    Connection& active = world_.left.connect("hello");
    watch_for_reply(active);
  }
  // Applications look now and then, as their events tell them to.
  void watch_for_reply(Connection& active) {
    accept_all();
    if (active.state == State::kReplyReceived) {
      EXPECT_EQ(world_.left.manager.ready(active, {}), 0);
      world_.after(pause(), [this, &active] { end(world_.left, active); });
    } else if (active.state == State::kRequestSent) {
      world_.after(pause(), [this, &active] { watch_for_reply(active); });
    }
  }
  void accept_all() {
    for (const auto& passive : world_.right.connections) {
      if (passive->state != State::kRequestReceived) continue;
      world_.right.accept(*passive, "welcome");
      world_.after(pause() * 4, [this, &passive = *passive] { end(world_.right, passive); });
    }
  }
  void end(Side& side, Connection& connection) {
    if (connection.state == State::kEstablished) {
      EXPECT_EQ(side.manager.disconnect(world_.now, connection), 0);
    }
  }

  void check() {
    for (const auto& active : world_.left.connections) {
      EXPECT_EQ(world_.left.of(*active), "reply, disconnected, time-wait exit");
    }
    EXPECT_EQ(world_.right.connections.size(), world_.left.connections.size());
    for (const auto& passive : world_.right.connections) {
      const std::string story = world_.right.of(*passive);
      // Where the ready message was lost, the end may be the first that is heard.
      EXPECT_TRUE(story == "request, established, disconnected, time-wait exit" ||
                  story == "request, disconnected, time-wait exit")
          << story;
    }
    EXPECT_TRUE(world_.left.is_quiet());
    EXPECT_TRUE(world_.right.is_quiet());
  }

  Prng prng_;
  World world_;
};

TEST(CmRandomLoss, EveryConnectionIsMadeAndEnded) {
  for (std::uint64_t seed = 1; seed <= 3'000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chance(seed).run();
  }
}

TEST(CmRandomLoss, EverySeekerIsAnswered) {
  for (std::uint64_t seed = 1; seed <= 1'000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    world.network.lost = static_cast<std::uint32_t>(10'000 + seed % 20 * 10'000);
    world.network.doubled = 50'000;
    world.network.longest = milliseconds(150);
    for (int i = 0; i < 8; ++i) world.left.resolve();
    ASSERT_TRUE(world.run_out());
    for (const auto& seeker : world.left.connections) {
      EXPECT_EQ(world.left.of(*seeker), "SIDR reply");
    }
    EXPECT_TRUE(world.left.is_quiet());
    EXPECT_TRUE(world.right.is_quiet());
  }
}

// The same seed is the same run, to the last bit of what was sent.
TEST(CmRandomLoss, IsTheSameForTheSameSeed) {
  std::vector<Mad> sent[2];
  for (std::vector<Mad>& mads : sent) {
    World world(42);
    world.network.lost = 200'000;
    world.network.longest = milliseconds(100);
    for (int i = 0; i < 8; ++i) world.left.connect();
    world.run_for(seconds(100));
    mads = world.sent;
  }
  ASSERT_EQ(sent[0].size(), sent[1].size());
  EXPECT_EQ(std::memcmp(sent[0].data(), sent[1].data(), sent[0].size() * sizeof(Mad)), 0);
}

}  // namespace
}  // namespace uroce::cm::test
