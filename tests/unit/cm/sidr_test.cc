// SPDX-License-Identifier: BSD-2-Clause
// Finding a datagram service (IBTA 12.11).
#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

class CmSidr : public ::testing::Test {
 protected:
  World world;
  Side& left = world.left;
  Side& right = world.right;
  Network& network = world.network;
};

TEST_F(CmSidr, IsAnsweredWithQueuePairAndKey) {
  const Connection& seeker = left.resolve("who is there");
  world.run_for(seconds(1));
  EXPECT_EQ(right.of(right.newest()), "SIDR request");
  EXPECT_EQ(right.last().data, "who is there");
  EXPECT_EQ(right.last().data_bytes, kSidrRequestPrivateBytes);
  EXPECT_EQ(right.last().addresses.source, left.gid());
  EXPECT_EQ(right.last().addresses.source_port, 0xabc);
  EXPECT_EQ(left.of(seeker), "SIDR reply");
  EXPECT_EQ(left.last().sidr_status, SidrStatus::kValid);
  EXPECT_EQ(left.last().qkey, 0x1234'5678U);
  EXPECT_EQ(left.last().data, "datagrams");
  EXPECT_EQ(left.last().data_bytes, 136U);
  EXPECT_EQ(seeker.remote.qpn, Qpn{0x777});
  EXPECT_EQ(world.sent.size(), 2U);
  EXPECT_TRUE(left.is_quiet());
  EXPECT_TRUE(right.is_quiet());
}

TEST_F(CmSidr, WhereNobodyListensIsUnsupported) {
  Manager::stop_listening(world.listener);
  const Connection& seeker = left.resolve();
  world.run_for(seconds(1));
  EXPECT_EQ(left.of(seeker), "SIDR reply");
  EXPECT_EQ(left.last().sidr_status, SidrStatus::kUnsupported);
  EXPECT_TRUE(left.is_quiet());
}

TEST_F(CmSidr, WhereThereIsNoRoomIsRejected) {
  right.has_room = false;
  left.resolve();
  world.run_for(seconds(1));
  EXPECT_EQ(left.last().sidr_status, SidrStatus::kReject);
}

TEST_F(CmSidr, OfAListenerForConnectionsIsRejected) {
  world.listener.serves = Serves::kRc;
  left.resolve();
  world.run_for(seconds(1));
  EXPECT_EQ(left.last().sidr_status, SidrStatus::kReject);
  EXPECT_TRUE(right.connections.empty());
  world.listener.serves = Serves::kDatagrams;
  left.resolve();
  world.run_for(seconds(1));
  EXPECT_EQ(left.last().sidr_status, SidrStatus::kValid);
}

TEST_F(CmSidr, CanBeRejectedByTheApplication) {
  right.habits.answers_sidr = false;
  left.resolve();
  world.run_for(milliseconds(50));
  EXPECT_EQ(right.manager.reply_to_sidr(right.newest(), SidrStatus::kReject, {}, 0, data_of("no")),
            0);
  world.run_for(seconds(1));
  EXPECT_EQ(left.last().sidr_status, SidrStatus::kReject);
  EXPECT_EQ(left.last().data, "no");
}

TEST_F(CmSidr, OfOneThatIsThoughtAboutAsksOnce) {
  right.habits.answers_sidr = false;
  const Connection& seeker = left.resolve();
  world.run_for(seconds(10));
  EXPECT_GT(world.count(Attribute::kSidrRequest), 3U);
  EXPECT_EQ(right.seen.size(), 1U);
  EXPECT_EQ(right.manager.reply_to_sidr(right.newest(), SidrStatus::kValid, {9}, 8, {}), 0);
  world.run_for(seconds(1));
  EXPECT_EQ(left.of(seeker), "SIDR reply");
}

TEST_F(CmSidr, IsAnsweredAgainWhenTheAnswerIsLost) {
  network.loses = [](std::size_t number, const Mad&) { return number == 1; };
  const Connection& seeker = left.resolve();
  world.run_for(seconds(1));
  EXPECT_EQ(left.of(seeker), "SIDR reply");
  EXPECT_EQ(right.connections.size(), 2U);
}

TEST_F(CmSidr, IsToldOnceOfAnAnswerThatComesTwice) {
  network.doubled = Prng::kMillion;
  const Connection& seeker = left.resolve();
  world.run_for(seconds(1));
  EXPECT_EQ(left.of(seeker), "SIDR reply");
}

TEST_F(CmSidr, WithoutAnAnswerIsGivenUpAfterAMinute) {
  network.loses = [](std::size_t, const Mad&) { return true; };
  const Connection& seeker = left.resolve();
  world.run_for(seconds(40));
  EXPECT_EQ(left.of(seeker), "");
  world.run_for(seconds(20));
  EXPECT_EQ(left.of(seeker), "unreachable");
  EXPECT_TRUE(left.is_quiet());
}

// Two seekers whose identifiers are the same, at different addresses.
TEST_F(CmSidr, KnowsSeekersByTheirAddressToo) {
  right.habits.answers_sidr = false;
  left.resolve();
  world.run_for(milliseconds(50));
  Route route = world.route_to_right();
  route.destination = ipv4(77);
  right.manager.on_mad(world.now, route, world.sent[0]);
  EXPECT_EQ(right.connections.size(), 2U);
}

TEST_F(CmSidr, AnswerToAnotherKindOfRequestIsIgnored) {
  network.loses = [](std::size_t, const Mad&) { return true; };
  const Connection& active = left.connect();
  SidrReplyWire wire;
  wire.request_id = Be32(active.local_id);
  Mad mad;
  mad.set(Attribute::kSidrReply, 1, wire);
  left.manager.on_mad(world.now, {.source = left.gid(), .destination = right.gid()}, mad);
  EXPECT_EQ(left.of(active), "");
  EXPECT_EQ(active.state, State::kRequestSent);
}

}  // namespace
}  // namespace uroce::cm::test
