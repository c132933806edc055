// SPDX-License-Identifier: BSD-2-Clause
// Packets for multicast groups (IBTA 10.5): a copy for each member, and for nobody else.
#include "protocol/fixture.h"
#include "wire/network.h"

namespace uroce::test {
namespace {

using namespace transport;
using wire::Opcode;

class MulticastTest : public ::testing::Test {
 protected:
  MulticastTest() : endpoint(1 << 16) {
    endpoint.set_link(wire_link());
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      TestQp& qp = add(i);
      if (i == 0) first = &qp;
      join(members[i], kGroup, qp);
    }
    join(neighbour, kNeighbour, add(8));
  }
  ~MulticastTest() override {
    for (MulticastMember& member : members) member.hook.unlink();
    neighbour.hook.unlink();
  }

  TestQp& add(std::uint32_t number, const QpOptions& options = {.service = Service::kUd}) {
    TestQp& made = endpoint.add_qp({0x100 + number}, options);
    endpoint.to_init(made);
    endpoint.to_rtr(made, {}, {});
    endpoint.to_rts(made, Psn(5));
    endpoint.post_receive(made, number, {endpoint.sge(256 * number, 256)});
    return made;
  }
  void join(MulticastMember& member, const Gid& group, TestQp& qp) {
    member.group = group;
    member.qp = &qp.qp;
    endpoint.hca.multicast().insert(member);
  }
  void arrive(const Gid& destination, Qpn qpn = kMulticastQpn, QKey qkey = {0x1111},
              Qpn source = kPeer) {
    Packet packet = make_packet({.opcode = Opcode::kUdSendOnly, .destination = qpn, .psn = Psn(1)},
                                16, wire::Deth{.qkey = qkey, .source = source});
    packet.has_addresses = true;
    packet.source = kSource;
    packet.destination = destination;
    endpoint.receive(packet);
    (void)endpoint.transmit();
  }

  // In one list of the table.
  const Gid kGroup = wire::gid_of_ipv4(0xef01'0203);
  const Gid kSource = wire::gid_of_ipv4(0x0a00'0002);
  const Gid kNeighbour = wire::gid_of_ipv4(0xef01'0303);
  Endpoint endpoint;
  std::array<MulticastMember, 3> members;
  MulticastMember neighbour;
  TestQp* first = nullptr;
};

TEST_F(MulticastTest, EachMemberTakesItsOwnCopy) {
  arrive(kGroup);
  const auto done = endpoint.poll_all();
  ASSERT_EQ(done.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done[i].wr_id, i);
    EXPECT_EQ(done[i].byte_count, 40U + 16U);
    EXPECT_EQ(done[i].source_qpn, kPeer);
  }
}

TEST_F(MulticastTest, GroupsOfOneListAreApart) {
  arrive(kNeighbour);
  const auto done = endpoint.poll_all();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].wr_id, 8U);
}

TEST_F(MulticastTest, WhoHasLeftIsSparedItAndTheLastEndsTheGroup) {
  members[1].hook.unlink();
  arrive(kGroup);
  EXPECT_EQ(endpoint.poll_all().size(), 2U);
  members[0].hook.unlink();
  members[2].hook.unlink();
  EXPECT_FALSE(endpoint.hca.multicast().has_members(kGroup));
  arrive(kGroup);
  EXPECT_EQ(endpoint.hca.counters().rx_unknown_qpn, 1U);
}

// Neither the number nor the address alone makes it one.
TEST_F(MulticastTest, OnlyTheNumberAndTheAddressTogetherAreMulticast) {
  arrive(wire::gid_of_ipv4(0x0a00'0001));
  arrive(wire::gid_of_ipv4(0xef01'0204));
  EXPECT_TRUE(endpoint.poll_all().empty());
  EXPECT_EQ(endpoint.hca.counters().rx_unknown_qpn, 2U);
  arrive(kGroup, first->qp.number);
  EXPECT_TRUE(endpoint.poll_all().empty());
  EXPECT_EQ(endpoint.hca.counters().rx_wrong_address, 1U);
}

TEST_F(MulticastTest, TheQKeyIsEachMembersOwn) {
  QpAttributes other;
  other.qkey = {0x2222};
  TestQp& stranger = add(9);
  ASSERT_EQ(endpoint.modify(stranger, other, qp_attribute::kQKey), 0);
  MulticastMember fourth;
  join(fourth, kGroup, stranger);
  arrive(kGroup);
  EXPECT_EQ(endpoint.poll_all().size(), 3U);
  EXPECT_EQ(endpoint.hca.counters().rx_bad_qkey, 1U);
  fourth.hook.unlink();
}

// Its number alone may be another host's.
TEST_F(MulticastTest, ItsSenderIsSparedIt) {
  struct Here final : HostOracle {
    bool peer_stalled(LinkId, const Path&) const override { return false; }
    bool is_own_address(const Gid& source) const override { return source == address; }
    Gid address;
  } here;
  endpoint.hca.set_oracle(&here);
  endpoint.post_receive(*first, 0, {endpoint.sge(0, 256)});
  arrive(kGroup, kMulticastQpn, {0x1111}, first->qp.number);
  EXPECT_EQ(endpoint.poll_all().size(), 3U);
  here.address = kSource;
  arrive(kGroup, kMulticastQpn, {0x1111}, first->qp.number);
  EXPECT_EQ(endpoint.poll_all().size(), 0U);
  EXPECT_EQ(endpoint.hca.counters().unreliable_dropped, 2U);
}

// It is lost to that member only.
TEST_F(MulticastTest, AMemberWithoutAReceiveMissesIt) {
  arrive(kGroup);
  arrive(kGroup);
  EXPECT_EQ(endpoint.poll_all().size(), 3U);
  EXPECT_EQ(endpoint.hca.counters().unreliable_dropped, 3U);
}

TEST_F(MulticastTest, AReliablePacketIsForNobodyThere) {
  Packet packet =
      make_packet({.opcode = Opcode::kRcSendOnly, .destination = kMulticastQpn, .psn = Psn(1)}, 16);
  packet.has_addresses = true;
  packet.source = wire::gid_of_ipv4(0x0a00'0002);
  packet.destination = kGroup;
  endpoint.receive(packet);
  EXPECT_TRUE(endpoint.poll_all().empty());
  EXPECT_EQ(endpoint.hca.counters().rx_wrong_service, 3U);
}

}  // namespace
}  // namespace uroce::test
