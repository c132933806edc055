// SPDX-License-Identifier: BSD-2-Clause
// How a connection is made (IBTA 12.9.6): REQ, MRA, REP, RTU, and any of them lost, late or twice.
#include <cerrno>

#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

class CmHandshake : public ::testing::Test {
 protected:
  // The `which`th message with that attribute.
  void lose(Attribute attribute, std::size_t which = 0) {
    network.loses = [=, seen = std::size_t{0}](std::size_t, const Mad& mad) mutable {
      return mad.attribute() == attribute && seen++ == which;
    };
  }
  void expect_established(const Connection& active) {
    EXPECT_EQ(left.of(active), "reply");
    EXPECT_EQ(right.of(right.newest()), "request, established");
    EXPECT_EQ(active.state, State::kEstablished);
    EXPECT_EQ(right.newest().state, State::kEstablished);
    EXPECT_EQ(active.remote_id, right.newest().local_id);
    EXPECT_EQ(right.newest().remote_id, active.local_id);
  }
  World world;
  Side& left = world.left;
  Side& right = world.right;
  Network& network = world.network;
};

TEST_F(CmHandshake, TakesFourMessages) {
  const Connection& active = left.connect("hello");
  world.run_for(seconds(1));
  expect_established(active);
  ASSERT_EQ(world.sent.size(), 4U);
  EXPECT_EQ(world.sent[0].attribute(), Attribute::kRequest);
  EXPECT_EQ(world.sent[1].attribute(), Attribute::kMessageReceipt);
  EXPECT_EQ(world.sent[2].attribute(), Attribute::kReply);
  EXPECT_EQ(world.sent[3].attribute(), Attribute::kReady);
  for (const Mad& mad : world.sent) {
    EXPECT_EQ(mad.header.transaction.get(), world.sent[0].header.transaction.get());
  }
  EXPECT_EQ(left.manager.next_deadline(), Instant::never());
  EXPECT_EQ(right.manager.next_deadline(), Instant::never());
}

TEST_F(CmHandshake, TellsEachSideWhatTheOtherOffers) {
  const Connection& active = left.connect();
  world.run_for(seconds(1));
  const Connection& passive = right.newest();
  EXPECT_EQ(passive.remote.qpn, active.local.qpn);
  EXPECT_EQ(passive.remote.psn, active.local.psn);
  EXPECT_EQ(passive.remote.ca_guid, left.guid());
  EXPECT_EQ(passive.remote.path_mtu, active.local.path_mtu);
  EXPECT_EQ(passive.service_id, kService);
  EXPECT_EQ(active.remote.qpn, passive.local.qpn);
  EXPECT_EQ(active.remote.psn, passive.local.psn);
  EXPECT_EQ(active.remote.ca_guid, right.guid());
}

TEST_F(CmHandshake, EachSideBeginsWithThePsnThatTheOtherHasNamed) {
  right.next_qpn = 0x500;  // and with it another PSN
  const Connection& active = left.connect();
  world.run_for(seconds(1));
  const Connection& passive = right.newest();
  const std::uint32_t named_by_active = world.sent[0].as<RequestWire>().psn_and_timeouts.high();
  const std::uint32_t named_by_passive = world.sent[2].as<ReplyWire>().psn.high();
  ASSERT_NE(named_by_active, named_by_passive);
  EXPECT_EQ(passive.first_psn_sent(), named_by_active);
  EXPECT_EQ(active.first_psn_expected(), named_by_active);
  EXPECT_EQ(active.first_psn_sent(), named_by_passive);
  EXPECT_EQ(passive.first_psn_expected(), named_by_passive);
}

TEST_F(CmHandshake, CarriesPrivateDataAndAddresses) {
  left.connect("hello");
  world.run_for(seconds(1));
  ASSERT_EQ(right.seen.size(), 2U);
  EXPECT_EQ(right.seen[0].data, "hello");
  EXPECT_EQ(right.seen[0].data_bytes, kRequestPrivateBytes);
  EXPECT_EQ(right.seen[0].addresses.source, left.gid());
  EXPECT_EQ(right.seen[0].addresses.destination, right.gid());
  EXPECT_EQ(right.seen[0].addresses.source_port, 0xabc);
  EXPECT_EQ(right.seen[1].data, "go");
  ASSERT_EQ(left.seen.size(), 1U);
  EXPECT_EQ(left.seen[0].data, "welcome");
  EXPECT_EQ(left.seen[0].data_bytes, 196U);
}

TEST_F(CmHandshake, SendsALostRequestAgainSoon) {
  lose(Attribute::kRequest);
  const Connection& active = left.connect();
  world.run_for(milliseconds(99));
  EXPECT_EQ(left.of(active), "");
  world.run_for(milliseconds(2));
  expect_established(active);
}

TEST_F(CmHandshake, SendsALostReplyAgainSoon) {
  lose(Attribute::kReply);
  const Connection& active = left.connect();
  world.run_for(milliseconds(101));
  expect_established(active);
}

TEST_F(CmHandshake, AnswersARepeatedReplyWithTheSameReady) {
  lose(Attribute::kReady);
  const Connection& active = left.connect();
  world.run_for(milliseconds(101));
  expect_established(active);
  EXPECT_EQ(world.count(Attribute::kReady), 2U);
  EXPECT_EQ(right.last().data, "go");
}

// The application takes its time: nothing is sent meanwhile, and the request comes once.
TEST_F(CmHandshake, IsPatientWhenThePeerAsksForIt) {
  right.habits.accepts = false;
  const Connection& active = left.connect();
  world.run_for(seconds(60));
  EXPECT_EQ(world.count(Attribute::kRequest), 1U);
  EXPECT_EQ(right.of(right.newest()), "request");
  right.accept(right.newest());
  world.run_for(seconds(1));
  expect_established(active);
}

TEST_F(CmHandshake, AsksForPatienceAgainWhenTheRequestIsRepeated) {
  lose(Attribute::kMessageReceipt);
  right.habits.accepts = false;
  const Connection& active = left.connect();
  world.run_for(milliseconds(150));
  EXPECT_EQ(world.count(Attribute::kRequest), 2U);
  EXPECT_EQ(world.count(Attribute::kMessageReceipt), 2U);
  EXPECT_EQ(right.connections.size(), 1U);
  right.accept(right.newest());
  world.run_for(seconds(1));
  expect_established(active);
}

TEST_F(CmHandshake, KnowsWhoAskedForPatienceWhileItLasts) {
  right.habits.accepts = false;
  const Connection& active = left.connect();
  EXPECT_EQ(active.remote_id, 0U);
  world.run_for(seconds(1));
  EXPECT_EQ(active.remote_id, right.newest().local_id);
  // It goes without a word, and another takes its place.
  lose(Attribute::kReject);
  right.manager.forget(world.now, right.newest());
  right.habits.accepts = true;
  world.run_for(seconds(69));
  EXPECT_EQ(world.count(Attribute::kRequest), 2U);
  expect_established(active);
}

// The reply, once there is one, is what a repeated request is answered with.
TEST_F(CmHandshake, RepeatsItsReplyWhenTheRequestIsRepeated) {
  network.loses = [](std::size_t number, const Mad& mad) {
    return mad.attribute() == Attribute::kMessageReceipt || number == 2;
  };
  const Connection& active = left.connect();
  world.run_for(milliseconds(101));
  expect_established(active);
}

TEST_F(CmHandshake, IgnoresWhatComesTwice) {
  network.doubled = Prng::kMillion;
  const Connection& active = left.connect();
  world.run_for(seconds(5));
  expect_established(active);
  EXPECT_EQ(right.connections.size(), 1U);
}

TEST_F(CmHandshake, IsEstablishedByThePeersFirstPacketToo) {
  network.loses = [](std::size_t, const Mad& mad) { return mad.attribute() == Attribute::kReady; };
  const Connection& active = left.connect();
  world.run_for(milliseconds(50));
  EXPECT_EQ(right.manager.note_established(right.newest()), 0);
  EXPECT_EQ(right.manager.note_established(right.newest()), EISCONN);
  expect_established(active);
  EXPECT_EQ(right.manager.next_deadline(), Instant::never());
}

TEST_F(CmHandshake, WaitsForTheApplicationToBeReady) {
  left.habits.is_ready = false;
  Connection& active = left.connect();
  world.run_for(seconds(10));
  EXPECT_EQ(left.of(active), "reply");
  EXPECT_EQ(right.of(right.newest()), "request");
  EXPECT_EQ(left.manager.ready(active, {}), 0);
  world.run_for(seconds(1));
  expect_established(active);
}

TEST_F(CmHandshake, NobodyIsThereIsKnownAfterAMinute) {
  network.loses = [](std::size_t, const Mad&) { return true; };
  const Connection& active = left.connect();
  world.run_for(seconds(40));
  EXPECT_EQ(left.of(active), "");
  world.run_for(seconds(20));
  EXPECT_EQ(left.of(active), "unreachable");
  EXPECT_EQ(world.count(Attribute::kRequest), 16U);
  EXPECT_TRUE(left.is_quiet());
}

// A quick application takes the reply before it is repeated; one that is not asks for patience.
TEST_F(CmHandshake, TheActiveSidesApplicationMayTakeItsTime) {
  left.habits.is_ready = false;
  Connection& active = left.connect();
  world.run_for(milliseconds(99));
  EXPECT_EQ(world.count(Attribute::kMessageReceipt), 1U);
  world.run_for(seconds(100));
  EXPECT_EQ(left.of(active), "reply");
  EXPECT_EQ(right.of(right.newest()), "request");
  const std::size_t replies = world.count(Attribute::kReply);
  EXPECT_GT(replies, 10U);
  EXPECT_LT(replies, 14U);
  EXPECT_EQ(world.count(Attribute::kMessageReceipt), replies);
  EXPECT_EQ(left.manager.ready(active, data_of("at last")), 0);
  world.run_for(seconds(1));
  expect_established(active);
}

TEST_F(CmHandshake, AskingForPatienceForEverIsGivenUp) {
  left.habits.is_ready = false;
  const Connection& active = left.connect();
  world.run_for(seconds(150));
  EXPECT_EQ(right.of(right.newest()), "request, unreachable");
  EXPECT_EQ(left.of(active), "reply, rejected");
  EXPECT_EQ(world.count(Attribute::kReply), 16U);
}

// And the other side is told, if that is possible.
TEST_F(CmHandshake, ReplyThatIsNeverAnsweredIsGivenUp) {
  left.habits.is_ready = false;
  network.loses = [this](std::size_t, const Mad& mad) {
    return mad.attribute() == Attribute::kMessageReceipt && world.count(Attribute::kReply) != 0;
  };
  const Connection& active = left.connect();
  world.run_for(seconds(60));
  EXPECT_EQ(right.of(right.newest()), "request, unreachable");
  EXPECT_EQ(left.of(active), "reply, rejected");
  EXPECT_EQ(left.last().reason, Reason::kTimeout);
  EXPECT_TRUE(left.is_quiet());
  EXPECT_TRUE(right.is_quiet());
}

TEST_F(CmHandshake, IntervalsDoubleUpToABound) {
  std::vector<Instant> times;
  network.loses = [&](std::size_t, const Mad& mad) {
    if (mad.attribute() == Attribute::kRequest) times.push_back(world.now);
    return true;
  };
  left.connect();
  ASSERT_TRUE(world.run_out());
  ASSERT_EQ(times.size(), 16U);
  std::int64_t expected = 100;
  for (std::size_t i = 1; i < times.size(); ++i) {
    EXPECT_EQ(times[i] - times[i - 1], milliseconds(expected));
    expected = std::min<std::int64_t>(2 * expected, 4'300);
  }
}

TEST_F(CmHandshake, BetweenTwoConnectionsOfOneManagerWorks) {
  Listener own;
  own.service_id = kService;
  left.manager.listen(own);
  Manager::Request request = left.request("to myself");
  request.route.destination = request.addresses.destination = left.gid();
  Connection& active = left.make();
  EXPECT_EQ(left.manager.connect(world.now, active, request, left.offer(0x300)), 0);
  left.next_qpn = 0x400;
  world.run_for(seconds(1));
  EXPECT_EQ(left.of(active), "reply");
  EXPECT_EQ(left.of(left.newest()), "request, established");
  EXPECT_EQ(left.manager.disconnect(world.now, active), 0);
  ASSERT_TRUE(world.run_out());
  EXPECT_EQ(left.of(active), "reply, disconnected, time-wait exit");
  EXPECT_EQ(left.of(left.newest()), "request, established, disconnected, time-wait exit");
  Manager::stop_listening(own);
}

TEST_F(CmHandshake, CanBeginAgainWithTheSameConnection) {
  Connection& active = left.connect();
  world.run_for(seconds(1));
  EXPECT_EQ(left.manager.disconnect(world.now, active), 0);
  ASSERT_TRUE(world.run_out());
  left.seen.clear();
  EXPECT_EQ(left.manager.connect(world.now, active, left.request(), left.offer(0x305)), 0);
  world.run_for(seconds(1));
  expect_established(active);
}

// --- Calls that the state does not allow
// ----------------------------------------------------------

TEST_F(CmHandshake, RefusesCallsOutOfOrder) {
  Connection idle;
  EXPECT_EQ(left.manager.ready(idle, {}), EINVAL);
  EXPECT_EQ(left.manager.accept(world.now, idle, {}, {}), EINVAL);
  EXPECT_EQ(left.manager.reject(idle, Reason::kConsumer, {}), EINVAL);
  EXPECT_EQ(left.manager.disconnect(world.now, idle), EINVAL);
  EXPECT_EQ(left.manager.note_established(idle), EINVAL);
  EXPECT_EQ(left.manager.reply_to_sidr(idle, SidrStatus::kValid, {}, 0, {}), EINVAL);
  EXPECT_TRUE(world.sent.empty());
}

TEST_F(CmHandshake, RefusesToBeginTwice) {
  Connection& active = left.connect();
  EXPECT_EQ(left.manager.connect(world.now, active, left.request(), left.offer(1)), EINVAL);
  EXPECT_EQ(left.manager.resolve_service(world.now, active, left.request()), EINVAL);
  world.run_for(seconds(1));
  EXPECT_EQ(left.manager.ready(active, {}), EINVAL);
  EXPECT_EQ(left.manager.reject(active, Reason::kConsumer, {}), EINVAL);
  EXPECT_EQ(right.manager.accept(world.now, right.newest(), {}, {}), EINVAL);
  expect_established(active);
}

}  // namespace
}  // namespace uroce::cm::test
