// SPDX-License-Identifier: BSD-2-Clause
// Multicast by the calls of stock libibverbs: groups of both families, within one process and from
// one to another.
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "datagram_end.h"
#include "node.h"
#include "process.h"

namespace uroce::tests {
namespace {

constexpr std::uint32_t kMulticastQpn = 0xff'ffff;

struct Family {
  const char* name;
  int source_index;  // of lo's addresses, 127.0.0.1 comes first
  ibv_gid group;
};
constexpr std::array kFamilies = {
    Family{"IPv4", 0, {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3}}},
    Family{"IPv6", 1, {{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34}}}};

ibv_ah* address_of(const Family& family, ibv_pd* pd) {
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = 1;
  attributes.grh.dgid = family.group;
  attributes.grh.sgid_index = static_cast<std::uint8_t>(family.source_index);
  return ibv_create_ah(pd, &attributes);
}

// A datagram queue pair with a receive posted, in the group or not.
struct Member : DatagramEnd {
  using DatagramEnd::DatagramEnd;
  using DatagramEnd::send;

  int send(const Family& family) {
    ibv_ah* const ah = address_of(family, qp->pd);
    if (ah == nullptr) return errno;
    const int error = send(ah, kMulticastQpn, 0x6d63'6173'7400'0000);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    return error;
  }
};

// Linux has no route for groups of IPv6 on lo, which is where these tests run.
bool is_reachable(const Family& family) {
  const char* const uplink = std::getenv("UROCE_UPLINK");
  return family.source_index == 0 || (uplink != nullptr && std::string_view(uplink) == "none");
}

class Multicast : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    if (!is_reachable(GetParam())) GTEST_SKIP() << "no route for IPv6 groups on lo";
  }
};

TEST_P(Multicast, ReachesEachQueuePairOfTheGroupAndNoOther) {
  Node node;
  ASSERT_TRUE(node.is_ready());
  Member first(node), second(node), stranger(node);
  const ibv_gid& group = GetParam().group;
  ASSERT_EQ(ibv_attach_mcast(first.qp, &group, 0), 0);
  ASSERT_EQ(ibv_attach_mcast(second.qp, &group, 0), 0);
  ASSERT_EQ(stranger.send(GetParam()), 0);
  for (const Member* member : {&first, &second}) {
    const ibv_wc done = member->wait();
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_EQ(done.byte_len, kGrhBytes + sizeof(std::uint64_t));
    EXPECT_EQ(done.src_qp, stranger.qp->qp_num);
    EXPECT_EQ(done.qp_num, member->qp->qp_num);
  }
  EXPECT_TRUE(stranger.is_empty());
  EXPECT_EQ(ibv_detach_mcast(first.qp, &group, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(second.qp, &group, 0), 0);
}

// Case P51. What the other has taken, the sender would have had before it.
TEST_P(Multicast, DoesNotComeBackToItsSender) {
  Node node;
  Member sender(node), other(node);
  const ibv_gid& group = GetParam().group;
  ASSERT_EQ(ibv_attach_mcast(sender.qp, &group, 0), 0);
  ASSERT_EQ(ibv_attach_mcast(other.qp, &group, 0), 0);
  ASSERT_EQ(sender.send(GetParam()), 0);
  EXPECT_EQ(other.wait().src_qp, sender.qp->qp_num);
  EXPECT_TRUE(sender.is_empty());
  EXPECT_EQ(ibv_detach_mcast(other.qp, &group, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(sender.qp, &group, 0), 0);
}

TEST_P(Multicast, ReachesAnotherProcess) {
  Process other([](const Line& line) {
    Node node;
    Member member(node);
    const ibv_gid& group = GetParam().group;
    const int error = ibv_attach_mcast(member.qp, &group, 0);
    line.say(error);
    if (error != 0) return 1;
    line.say(member.wait().byte_len);
    return ibv_detach_mcast(member.qp, &group, 0);
  });
  ASSERT_EQ(other.line.hear<int>(), 0);
  Node node;
  Member sender(node);
  ASSERT_EQ(sender.send(GetParam()), 0);
  EXPECT_EQ(other.line.hear<std::uint32_t>(), kGrhBytes + sizeof(std::uint64_t));
  EXPECT_EQ(other.wait(), 0);
}

TEST_P(Multicast, AttachingAgainChangesNothing) {
  Node node;
  Member member(node);
  const ibv_gid& group = GetParam().group;
  ASSERT_EQ(ibv_attach_mcast(member.qp, &group, 0), 0);
  EXPECT_EQ(ibv_attach_mcast(member.qp, &group, 0), 0);
  EXPECT_EQ(ibv_destroy_qp(member.qp), EBUSY);
  EXPECT_EQ(ibv_detach_mcast(member.qp, &group, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(member.qp, &group, 0), EINVAL);
}

TEST_P(Multicast, IsForDatagramsAndForGroups) {
  Node node;
  EXPECT_EQ(ibv_attach_mcast(node.qp, &GetParam().group, 0), EINVAL);  // reliable
  Member member(node);
  const ibv_gid own = node.address().gid;
  EXPECT_EQ(ibv_attach_mcast(member.qp, &own, 0), EINVAL);
}

// What stands before it names the group as the address it came to, which is nobody's own.
TEST_P(Multicast, CannotBeAnsweredByWhatStandsBeforeIt) {
  Node node;
  ASSERT_TRUE(node.is_ready());
  Member member(node), sender(node, 2048);
  const ibv_gid& group = GetParam().group;
  ASSERT_EQ(ibv_attach_mcast(member.qp, &group, 0), 0);
  ASSERT_EQ(sender.send(GetParam()), 0);
  ibv_wc done = member.wait();
  ibv_grh grh = member.grh();
  errno = 0;
  EXPECT_EQ(ibv_create_ah_from_wc(node.pd, &done, &grh, 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_detach_mcast(member.qp, &group, 0), 0);
}

INSTANTIATE_TEST_SUITE_P(Families, Multicast, testing::ValuesIn(kFamilies),
                         [](const auto& family) { return family.param.name; });

TEST(MulticastLimits, AsManyGroupsAsThereMayBe) {
  Node node;
  Member member(node);
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(node.context, &device), 0);
  ibv_gid group = kFamilies[0].group;
  const auto number = [&group](int i) {
    group.raw[14] = static_cast<std::uint8_t>(i >> 8);
    group.raw[15] = static_cast<std::uint8_t>(i);
  };
  for (int i = 0; i < device.max_mcast_grp; ++i) {
    number(i);
    ASSERT_EQ(ibv_attach_mcast(member.qp, &group, 0), 0) << i;
  }
  number(device.max_mcast_grp);
  EXPECT_EQ(ibv_attach_mcast(member.qp, &group, 0), ENOMEM);
  for (int i = 0; i < device.max_mcast_grp; ++i) {
    number(i);
    ASSERT_EQ(ibv_detach_mcast(member.qp, &group, 0), 0) << i;
  }
}

TEST(MulticastLimits, AsManyMembersAsAGroupMayHave) {
  Node node;
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(node.context, &device), 0);
  const ibv_gid& group = kFamilies[0].group;
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i <= device.max_mcast_qp_attach; ++i) {
    members.push_back(std::make_unique<Member>(node));
    const bool is_one_too_many = i == device.max_mcast_qp_attach;
    ASSERT_EQ(ibv_attach_mcast(members.back()->qp, &group, 0), is_one_too_many ? ENOMEM : 0);
  }
  members.pop_back();
  for (const auto& member : members) EXPECT_EQ(ibv_detach_mcast(member->qp, &group, 0), 0);
}

}  // namespace
}  // namespace uroce::tests
