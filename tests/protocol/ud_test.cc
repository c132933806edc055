// SPDX-License-Identifier: BSD-2-Clause
// Unreliable datagrams, packet by packet (IBTA 9.8.3).
#include "protocol/fixture.h"
#include "wire/network.h"

namespace uroce::test {
namespace {

using namespace transport;
using wire::Opcode;

class UdTest : public ::testing::Test {
 protected:
  static constexpr std::uint16_t kMtu = 1024;
  static constexpr QKey kQKey{0x1111};

  UdTest() : endpoint(1 << 16), qp((endpoint.set_link(wire_link()), add(kOurs))) {
    for (AddressPath* path : {&here, &there}) {
      path->path.source = wire::gid_of_ipv4(0x0a00'0001);
      path->link = kLocalLink;
    }
    here.path.destination = wire::gid_of_ipv4(0x0a00'0002);
    there.path.destination = wire::gid_of_ipv4(0x0a00'0003);
  }

  TestQp& add(Qpn number, Srq* srq = nullptr) {
    TestQp& made = endpoint.add_qp(number, {.service = Service::kUd, .srq = srq});
    endpoint.to_init(made);
    endpoint.to_rtr(made, {}, {});
    endpoint.to_rts(made, Psn(5));
    return made;
  }
  void post(std::uint64_t wr_id, std::uint32_t bytes, AddressPath* to, QKey qkey = kQKey) {
    endpoint.post_send(qp, {.wr_id = wr_id,
                            .sges = {endpoint.sge(0, bytes)},
                            .target = DatagramTarget{to, kPeer, qkey}});
  }
  void arrive(std::size_t bytes, QKey qkey = kQKey) {
    Packet packet =
        make_packet({.opcode = Opcode::kUdSendOnly, .destination = kOurs, .psn = Psn(1)}, bytes,
                    wire::Deth{.qkey = qkey, .source = kPeer});
    packet.has_addresses = true;
    packet.source = source;
    packet.destination = destination;
    endpoint.receive(packet);
    (void)endpoint.transmit();
  }

  Endpoint endpoint;
  AddressPath here, there;
  TestQp& qp;
  Gid source = wire::gid_of_ipv4(0x0a00'0002);
  Gid destination = wire::gid_of_ipv4(0x0a00'0001);
};

TEST_F(UdTest, ADatagramSaysFromWhomAndItsKey) {
  post(1, 100, &here);
  post(2, 100, &here, {kOwnQKey | 7});
  const auto sent = endpoint.transmit();
  ASSERT_EQ(sent.size(), 2U);
  for (const Packet& packet : sent) {
    EXPECT_EQ(packet.view().opcode->opcode, Opcode::kUdSendOnly);
    EXPECT_EQ(packet.view().bth.destination, kPeer);
    EXPECT_EQ(packet.view().deth, (wire::Deth{.qkey = kQKey, .source = kOurs}));
    EXPECT_EQ(packet.destination, here.path.destination);
  }
  (void)endpoint.transmit();
  EXPECT_EQ(endpoint.poll_all().size(), 2U);
  EXPECT_EQ(here.users.load(), 0U);
}

// Each to its own destination, in order, also where some frames are refused at first.
TEST_F(UdTest, DatagramsToSeveralDestinations) {
  for (std::uint64_t i = 0; i < 12; ++i) post(i, 8, i % 3 == 0 ? &there : &here);
  std::vector<Packet> sent;
  for (int turn = 0; turn < 40; ++turn) {
    endpoint.refuses = turn % 2 == 0;
    for (Packet& packet : endpoint.transmit()) sent.push_back(std::move(packet));
  }
  ASSERT_EQ(sent.size(), 12U);
  for (std::uint32_t i = 0; i < 12; ++i) {
    EXPECT_EQ(sent[i].view().bth.psn, Psn(5 + i));
    EXPECT_EQ(sent[i].destination, (i % 3 == 0 ? there : here).path.destination);
  }
  const auto entries = endpoint.poll_all();
  ASSERT_EQ(entries.size(), 12U);
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(entries[i].wr_id, i);
}

TEST_F(UdTest, WhereNoWayLeadsADatagramIsLostAndTheNextIsNot) {
  post(1, 8, nullptr);
  post(2, 8, nullptr);
  post(3, 8, &here);
  EXPECT_EQ(endpoint.transmit().size() + endpoint.transmit().size() + endpoint.transmit().size(),
            1U);
  EXPECT_EQ(endpoint.poll_all().size(), 3U);
  EXPECT_EQ(endpoint.hca.counters().datagrams_to_nobody, 2U);
  EXPECT_TRUE(endpoint.hca.is_unused());
}

TEST_F(UdTest, MoreThanAPacketHoldsIsAnErrorOfTheSendQueue) {
  post(1, 8, &here);
  post(2, kMtu + 1, &here);
  post(3, 8, &here);
  EXPECT_EQ(endpoint.transmit().size(), 1U);
  (void)endpoint.transmit();
  const auto entries = endpoint.poll_all();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[1].status, WcStatus::kLocalLengthError);
  EXPECT_EQ(entries[2].status, WcStatus::kFlushed);
  EXPECT_EQ(qp.qp.state.load(), QpState::kSqe);
  EXPECT_EQ(here.users.load(), 0U);
}

TEST_F(UdTest, ResetLetsGoOfThePaths) {
  post(1, 8, &here);
  post(2, 8, &there);
  QpAttributes reset;
  ASSERT_EQ(endpoint.modify(qp, reset, qp_attribute::kState), 0);
  EXPECT_EQ(here.users.load() + there.users.load(), 0U);
  EXPECT_TRUE(endpoint.hca.is_unused());
}

TEST_F(UdTest, ADatagramArrivesBehindItsAddresses) {
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 20), endpoint.sge(1000, 200)});
  arrive(50);
  const auto entry = endpoint.poll();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->status, WcStatus::kSuccess);
  EXPECT_EQ(entry->byte_count, 90U);
  EXPECT_EQ(entry->source_qpn, kPeer);
  EXPECT_EQ(entry->flags, wc_flag::kGrh);
  EXPECT_EQ(entry->service_level, packet_kind::kUdpIpv4);
  // IPv4 lies in bytes 20 to 39 (the second piece here), the data behind it.
  EXPECT_EQ(endpoint.buffer[1000], std::byte{0x45});
  EXPECT_EQ(endpoint.buffer[1012], std::byte{10});
  EXPECT_EQ(endpoint.buffer[1015], std::byte{2});
  EXPECT_EQ(endpoint.buffer[1021], std::byte{1});
}

TEST_F(UdTest, AnIpv6HeaderFillsTheFortyBytes) {
  source.bytes = {0xfd, 1};
  destination.bytes = {0xfd, 2};
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 200)});
  arrive(4);
  const auto entry = endpoint.poll();
  EXPECT_EQ(entry->byte_count, 44U);
  EXPECT_EQ(entry->service_level, packet_kind::kUdpIpv6);
  EXPECT_EQ(endpoint.buffer[0], std::byte{0x60});
  EXPECT_EQ(endpoint.buffer[6], std::byte{17});
  EXPECT_EQ(endpoint.buffer[9], std::byte{1});
  EXPECT_EQ(endpoint.buffer[25], std::byte{2});
}

TEST_F(UdTest, AWrongKeyOrNoReceiveIsALostDatagram) {
  arrive(4);
  EXPECT_EQ(endpoint.hca.counters().unreliable_dropped, 1U);
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 200)});
  arrive(4, {0x2222});
  EXPECT_EQ(endpoint.hca.counters().rx_bad_qkey, 1U);
  EXPECT_FALSE(endpoint.poll());
  arrive(4);
  EXPECT_EQ(endpoint.poll()->wr_id, 3U);
}

TEST_F(UdTest, ADatagramThatIsTooLongFailsItsReceiveOnly) {
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 43)});
  endpoint.post_receive(qp, 4, {endpoint.sge(0, 44)});
  arrive(4);
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalLengthError);
  EXPECT_EQ(endpoint.buffer[20], std::byte{0});
  EXPECT_EQ(qp.qp.state.load(), QpState::kRts);
  arrive(4);
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kSuccess);
}

TEST_F(UdTest, AReceiveIntoForeignMemoryEndsTheQueuePair) {
  endpoint.post_receive(qp, 3, {{endpoint.address(0), 100, {0xbad}}});
  arrive(4);
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalProtectionError);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

// A peer in shared memory could leave them out.
TEST_F(UdTest, WithoutAddressesADatagramIsDropped) {
  endpoint.post_receive(qp, 3, {endpoint.sge(0, 200)});
  endpoint.receive(make_packet({.opcode = Opcode::kUdSendOnly, .destination = kOurs, .psn = Psn(1)},
                               4, wire::Deth{.qkey = kQKey, .source = kPeer}));
  EXPECT_EQ(endpoint.hca.counters().rx_wrong_address, 1U);
  EXPECT_FALSE(endpoint.poll());
}

}  // namespace
}  // namespace uroce::test
