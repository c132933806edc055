// SPDX-License-Identifier: BSD-2-Clause
// What the manager sends, field by field as it lies on the wire (IBTA 12.6 to 12.11).
#include "unit/cm/message_bits.h"
#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

class CmSent : public ::testing::Test {
 protected:
  std::span<const std::byte> sent(Attribute attribute) {
    for (auto mad = world.sent.rbegin(); mad != world.sent.rend(); ++mad) {
      if (mad->attribute() == attribute) return mad->message;
    }
    ADD_FAILURE() << "was not sent";
    return none_.message;
  }
  World world;

 private:
  const Mad none_{};
};

TEST_F(CmSent, ReadyAndMessageReceipt) {
  Connection& active = world.left.connect();
  world.run_for(seconds(1));
  const Connection& passive = world.right.newest();
  expect_fields(sent(Attribute::kMessageReceipt), kMessageBytes,
                {{"local identifier", 0, 0, 32, passive.local_id},
                 {"remote identifier", 4, 0, 32, active.local_id},
                 {"of a request", 8, 0, 2, 0},
                 {"service timeout", 9, 0, 5, 24}});
  expect_fields(sent(Attribute::kReady), 8,
                {{"local identifier", 0, 0, 32, active.local_id},
                 {"remote identifier", 4, 0, 32, passive.local_id}});
  EXPECT_EQ(text_of(sent(Attribute::kReady).subspan(8)), "go");
}

TEST_F(CmSent, DisconnectRequestAndReply) {
  Connection& active = world.left.connect();
  world.run_for(seconds(1));
  const Connection& passive = world.right.newest();
  EXPECT_EQ(world.left.manager.disconnect(world.now, active), 0);
  world.run_for(seconds(1));
  expect_fields(sent(Attribute::kDisconnectRequest), kMessageBytes,
                {{"local identifier", 0, 0, 32, active.local_id},
                 {"remote identifier", 4, 0, 32, passive.local_id},
                 {"remote QPN", 8, 0, 24, passive.local.qpn.value}});
  expect_fields(sent(Attribute::kDisconnectReply), kMessageBytes,
                {{"local identifier", 0, 0, 32, passive.local_id},
                 {"remote identifier", 4, 0, 32, active.local_id}});
}

TEST_F(CmSent, RejectOfARequest) {
  world.right.habits.accepts = false;
  Connection& active = world.left.connect();
  world.run_for(seconds(1));
  Connection& passive = world.right.newest();
  EXPECT_EQ(world.right.manager.reject(passive, Reason::kConsumer, data_of("no")), 0);
  expect_fields(sent(Attribute::kReject), 84,
                {{"local identifier", 0, 0, 32, passive.local_id},
                 {"remote identifier", 4, 0, 32, active.local_id},
                 {"of a request", 8, 0, 2, 0},
                 {"length of information", 9, 0, 7, 0},
                 {"reason", 10, 0, 16, 28}});
  EXPECT_EQ(text_of(sent(Attribute::kReject).subspan(84)), "no");
}

TEST_F(CmSent, RejectOfAReply) {
  world.left.habits.is_ready = false;
  Connection& active = world.left.connect();
  world.run_for(milliseconds(50));
  EXPECT_EQ(world.left.manager.reject(active, Reason::kConsumer, {}), 0);
  expect_fields(sent(Attribute::kReject), kMessageBytes,
                {{"local identifier", 0, 0, 32, active.local_id},
                 {"remote identifier", 4, 0, 32, world.right.newest().local_id},
                 {"of a reply", 8, 0, 2, 1},
                 {"reason", 10, 0, 16, 28}});
}

// Its receiver knows it by the sender's GUID and identifier.
TEST_F(CmSent, RejectThatKnowsNoRemoteIdentifier) {
  world.network.loses = [](std::size_t, const Mad&) { return true; };
  Connection& active = world.left.connect();
  const std::uint32_t id = active.local_id;
  world.left.manager.forget(world.now, active);
  expect_fields(sent(Attribute::kReject), kMessageBytes,
                {{"local identifier", 0, 0, 32, id},
                 {"of neither", 8, 0, 2, 2},
                 {"length of information", 9, 0, 7, 8},
                 {"reason", 10, 0, 16, 4},
                 {"CA GUID", 12, 0, 64, world.left.guid()}});
}

TEST_F(CmSent, SidrRequestAndReply) {
  Connection& active = world.left.resolve("who");
  const std::uint32_t id = active.local_id;
  world.run_for(seconds(1));
  const auto request = sent(Attribute::kSidrRequest);
  expect_fields(
      request, 16,
      {{"request", 0, 0, 32, id}, {"P_Key", 4, 0, 16, 0xffff}, {"service", 8, 0, 64, kService}});
  EXPECT_EQ(bits(request, 17, 0, 4), 4U);
  EXPECT_EQ(bits(request, 18, 0, 16), 0xabcU);
  EXPECT_EQ(text_of(request.subspan(16 + kIpHeaderBytes)), "who");
  const auto reply = sent(Attribute::kSidrReply);
  expect_fields(reply, 96,
                {{"request", 0, 0, 32, id},
                 {"QPN", 8, 0, 24, 0x777},
                 {"service", 12, 0, 64, kService},
                 {"Q_Key", 20, 0, 32, 0x1234'5678}});
  EXPECT_EQ(text_of(reply.subspan(96)), "datagrams");
}

TEST_F(CmSent, AlternatePathResponse) {
  Mad load;
  ReadyWire ids;
  ids.local_id = Be32(0x1122'3344);
  ids.remote_id = Be32(0x5566'7788);
  load.set(Attribute::kLoadAlternatePath, 77, ids);
  world.inject(load);
  ASSERT_EQ(world.sent.size(), 1U);
  expect_fields(sent(Attribute::kAlternatePathResponse), kMessageBytes,
                {{"local identifier", 0, 0, 32, 0x5566'7788},
                 {"remote identifier", 4, 0, 32, 0x1122'3344},
                 {"status: unsupported", 9, 0, 8, 2}});
  EXPECT_EQ(world.sent[0].header.transaction.get(), 77U);
}

}  // namespace
}  // namespace uroce::cm::test
