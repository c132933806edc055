// SPDX-License-Identifier: BSD-2-Clause
// How a connection is refused (IBTA 12.6.7): by either application, and by the manager itself.
#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

class CmRefusal : public ::testing::Test {
 protected:
  void expect_rejected(const Connection& active, Reason reason,
                       std::string_view words = "rejected") {
    EXPECT_EQ(left.of(active), words);
    ASSERT_FALSE(left.seen.empty());
    EXPECT_EQ(left.last().reason, reason);
    EXPECT_TRUE(left.is_quiet());
  }
  World world;
  Side& left = world.left;
  Side& right = world.right;
  Network& network = world.network;
};

TEST_F(CmRefusal, ByThePassiveSideSaysWhy) {
  right.habits.accepts = false;
  const Connection& active = left.connect();
  world.run_for(seconds(1));
  EXPECT_EQ(right.manager.reject(right.newest(), Reason::kConsumer, data_of("not today")), 0);
  world.run_for(seconds(1));
  expect_rejected(active, Reason::kConsumer);
  EXPECT_EQ(left.last().data, "not today");
  EXPECT_EQ(left.last().data_bytes, 148U);
  EXPECT_TRUE(right.is_quiet());
}

TEST_F(CmRefusal, ByTheActiveSideSaysWhy) {
  left.habits.is_ready = false;
  Connection& active = left.connect();
  world.run_for(milliseconds(50));
  EXPECT_EQ(left.manager.reject(active, Reason::kConsumer, data_of("after all, no")), 0);
  world.run_for(seconds(1));
  EXPECT_EQ(right.of(right.newest()), "request, rejected");
  EXPECT_EQ(right.last().reason, Reason::kConsumer);
  EXPECT_EQ(right.last().data, "after all, no");
  EXPECT_TRUE(left.is_quiet());
  EXPECT_TRUE(right.is_quiet());
}

TEST_F(CmRefusal, WhereNobodyListens) {
  Manager::stop_listening(world.listener);
  const Connection& active = left.connect();
  world.run_for(seconds(1));
  expect_rejected(active, Reason::kInvalidServiceId);
  EXPECT_TRUE(right.connections.empty());
}

// A request that comes again may find room.
TEST_F(CmRefusal, IsNotForWantOfRoom) {
  right.has_room = false;
  const Connection& active = left.connect();
  world.run_for(seconds(1));
  EXPECT_EQ(left.of(active), "");
  EXPECT_EQ(world.sent.size(), world.count(Attribute::kRequest));
  right.has_room = true;
  world.run_for(seconds(5));
  EXPECT_EQ(left.of(active), "reply");
}

TEST_F(CmRefusal, OfAServiceTypeThatIsNoneOfOurs) {
  RequestWire request = make_request(77, kService, world.route_to_right(), left.offer(5),
                                     left.request().addresses, {});
  request.remote_eecn_and_flags = Be24_8(0, 2 << 1);  // RD
  Mad mad;
  mad.set(Attribute::kRequest, 5, request);
  world.inject(mad);
  ASSERT_EQ(world.sent.size(), 1U);
  const auto wire = world.sent[0].as<RejectWire>();
  EXPECT_EQ(wire.remote_id.get(), 77U);
  EXPECT_EQ(wire.local_id.get(), 0U);
  EXPECT_EQ(wire.reason.get(), static_cast<int>(Reason::kInvalidService));
  EXPECT_EQ(world.sent[0].header.transaction.get(), 5U);
}

// Private data of a request that does not begin with addresses: no service of ours is meant.
TEST_F(CmRefusal, OfARequestWithoutAddresses) {
  RequestWire request = make_request(77, kService, world.route_to_right(), left.offer(5),
                                     left.request().addresses, {});
  request.private_data[1] = std::byte{0};
  Mad mad;
  mad.set(Attribute::kRequest, 5, request);
  world.inject(mad);
  ASSERT_EQ(world.sent.size(), 1U);
  EXPECT_EQ(world.sent[0].as<RejectWire>().reason.get(),
            static_cast<int>(Reason::kInvalidServiceId));
}

TEST_F(CmRefusal, OfAServiceThatTheListenerIsNotFor) {
  const struct {
    Serves serves;
    Service service;
    bool is_served;
  } rows[] = {
      {Serves::kRc, Service::kRc, true},         {Serves::kUc, Service::kUc, true},
      {Serves::kXrc, Service::kXrc, true},       {Serves::kAll, Service::kUc, true},
      {Serves::kUc, Service::kRc, false},        {Serves::kRc, Service::kUc, false},
      {Serves::kRc, Service::kXrc, false},       {Serves::kDatagrams, Service::kRc, false},
      {Serves::kDatagrams, Service::kUc, false},
  };
  for (const auto& row : rows) {
    world.listener.serves = row.serves;
    Connection& active = left.make();
    Offer offer = left.offer(left.next_qpn++);
    offer.service = row.service;
    EXPECT_EQ(left.manager.connect(world.now, active, left.request(), offer), 0);
    world.run_for(milliseconds(50));
    EXPECT_EQ(left.of(active), row.is_served ? "reply" : "rejected") << &row - rows;
    EXPECT_EQ(left.last().reason, row.is_served ? Reason::kNone : Reason::kConsumer);
  }
  EXPECT_EQ(right.connections.size(), 4U);
}

// The peer's queue pair is connected anew: the former owner's connection is over (IBTA 12.9.8.3).
TEST_F(CmRefusal, OfAQueuePairThatWeAreConnectedWithEndsTheFormerConnection) {
  left.connect();
  world.run_for(seconds(1));
  Connection& former = right.newest();
  Connection& active = left.make();
  EXPECT_EQ(left.manager.connect(world.now, active, left.request(), left.offer(0x300)), 0);
  world.run_for(milliseconds(500));
  EXPECT_EQ(left.of(active), "rejected");
  for (const Seen& one : left.seen) {
    if (one.connection != &active) continue;
    EXPECT_EQ(one.reason, Reason::kStaleConnection);
  }
  EXPECT_EQ(right.of(former), "request, established, disconnected");
  EXPECT_EQ(former.state, State::kTimeWait);
}

// Another connection under the identifier of one that there is.
TEST_F(CmRefusal, OfAnIdentifierThatIsInUseWithAnotherQueuePair) {
  left.connect();
  world.run_for(seconds(1));
  const Connection& known = right.newest();
  Mad mad;
  mad.set(Attribute::kRequest, 5,
          make_request(known.remote_id, kService, world.route_to_right(), left.offer(0x999),
                       left.request().addresses, {}));
  const std::size_t before = world.sent.size();
  world.inject(mad);
  ASSERT_EQ(world.sent.size(), before + 1);
  EXPECT_EQ(world.sent.back().as<RejectWire>().reason.get(),
            static_cast<int>(Reason::kStaleConnection));
  EXPECT_EQ(known.state, State::kEstablished);
}

TEST_F(CmRefusal, OfAReplyToNobody) {
  network.loses = [](std::size_t, const Mad& mad) { return mad.attribute() == Attribute::kReply; };
  Connection& active = left.connect();
  world.run_for(milliseconds(50));
  left.manager.forget(world.now, active);
  network.loses = [](std::size_t, const Mad& mad) {
    return mad.attribute() == Attribute::kReject && mad.as<RejectWire>().reason.get() != 6;
  };
  world.run_for(seconds(1));
  EXPECT_EQ(right.of(right.newest()), "request, rejected");
}

// The request comes again, and with it the question.
TEST_F(CmRefusal, ThatIsLostIsAskedForAgain) {
  right.habits.accepts = false;
  network.loses = [](std::size_t, const Mad& mad) { return mad.attribute() == Attribute::kReject; };
  const Connection& active = left.connect();
  world.run_for(seconds(1));
  EXPECT_EQ(right.manager.reject(right.newest(), Reason::kConsumer, {}), 0);
  network.loses = nullptr;
  world.run_for(seconds(80));
  ASSERT_EQ(right.connections.size(), 2U);
  EXPECT_EQ(right.manager.reject(right.newest(), Reason::kConsumer, {}), 0);
  world.run_for(seconds(1));
  expect_rejected(active, Reason::kConsumer);
}

TEST_F(CmRefusal, OfARequestByNobody) {
  Mad mad;
  mad.set(Attribute::kRequest, 5,
          make_request(0, kService, world.route_to_right(), left.offer(5), left.request().addresses,
                       {}));
  world.inject(mad);
  EXPECT_TRUE(world.sent.empty());
  EXPECT_TRUE(right.connections.empty());
}

TEST_F(CmRefusal, LosePeerIsAsIfItHadSaidSo) {
  network.loses = [](std::size_t, const Mad&) { return true; };
  Connection& active = left.connect();
  Connection& seeker = left.resolve();
  left.manager.lose_peer(world.now, active);
  left.manager.lose_peer(world.now, seeker);
  EXPECT_EQ(left.of(active), "unreachable");
  EXPECT_EQ(left.of(seeker), "unreachable");
  EXPECT_TRUE(left.is_quiet());
}

TEST_F(CmRefusal, LosePeerEndsWhatIsEstablished) {
  Connection& active = left.connect();
  world.run_for(seconds(1));
  left.manager.lose_peer(world.now, active);
  left.manager.lose_peer(world.now, active);
  EXPECT_EQ(left.of(active), "reply, disconnected");
  world.run_for(seconds(2));
  EXPECT_EQ(left.of(active), "reply, disconnected, time-wait exit");
  EXPECT_TRUE(left.is_quiet());
}

}  // namespace
}  // namespace uroce::cm::test
