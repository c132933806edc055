// SPDX-License-Identifier: BSD-2-Clause
// What the device says of its queue pairs beyond their attributes, and what it has not.
#include <cerrno>
#include <cstdlib>

#include "node.h"
#include "process.h"

namespace uroce::tests {
namespace {

class DeviceVerbs : public testing::Test {
 protected:
  Node node_;
};

TEST_F(DeviceVerbs, HasNoEnhancementsToAgreeUpon) {
  ibv_ece ece{.vendor_id = 1, .options = 2, .comp_mask = 3};
  ASSERT_EQ(ibv_query_ece(node_.qp, &ece), 0);
  EXPECT_NE(ece.vendor_id, 0U);
  EXPECT_EQ(ece.options, 0U);
  EXPECT_EQ(ece.comp_mask, 0U);
  EXPECT_EQ(ibv_set_ece(node_.qp, &ece), 0);
  const ibv_ece ours = ece;
  ece.options = 1;
  EXPECT_EQ(ibv_set_ece(node_.qp, &ece), EINVAL);
  ece = ours;
  ece.comp_mask = 1;
  EXPECT_EQ(ibv_set_ece(node_.qp, &ece), EINVAL);
  ece = ours;
  ece.vendor_id = 0x15b3;  // of somebody who has
  EXPECT_EQ(ibv_set_ece(node_.qp, &ece), EINVAL);
}

TEST_F(DeviceVerbs, PromisesNoOrderInsideOfAMessage) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    EXPECT_EQ(ibv_query_qp_data_in_order(node_.qp, opcode, 0), 0);
  }
}

TEST_F(DeviceVerbs, HasOnePortAndItsNumberIs1) {
  ibv_port_attr attributes{};
  for (const std::uint8_t port : {std::uint8_t{0}, std::uint8_t{2}}) {
    errno = 0;
    EXPECT_EQ(ibv_query_port(node_.context, port, &attributes), EINVAL);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(DeviceVerbs, AttributesAreAskedForInPartsThatThereAre) {
  ibv_device_attr_ex attributes{};
  ibv_query_device_ex_input input{.comp_mask = 1};
  EXPECT_EQ(ibv_query_device_ex(node_.context, &input, &attributes), EINVAL);
  verbs_context* const extended = verbs_get_ctx(node_.context);
  ASSERT_NE(extended, nullptr);
  constexpr std::size_t kLeast = sizeof(ibv_device_attr);
  EXPECT_EQ(extended->query_device_ex(node_.context, nullptr, &attributes, kLeast - 1), EINVAL);
  EXPECT_EQ(extended->query_device_ex(node_.context, nullptr, &attributes, kLeast), 0);
}

TEST_F(DeviceVerbs, SharedReceiveQueuesAreOrdinaryOrOfXrc) {
  ibv_srq_init_attr_ex a{};
  a.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
  a.pd = node_.pd;
  a.comp_mask = IBV_SRQ_INIT_ATTR_PD | 1U << 31;
  errno = 0;
  EXPECT_EQ(ibv_create_srq_ex(node_.context, &a), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  a.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
  a.srq_type = IBV_SRQT_TM;
  errno = 0;
  EXPECT_EQ(ibv_create_srq_ex(node_.context, &a), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  a.srq_type = IBV_SRQT_BASIC;
  ibv_srq* const srq = ibv_create_srq_ex(node_.context, &a);
  ASSERT_NE(srq, nullptr);
  std::uint32_t number = 0;
  EXPECT_EQ(ibv_get_srq_num(srq, &number), EINVAL);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(DeviceVerbs, QueuePairsHaveNoOffloadsAndNoOperationsOfOtherServices) {
  const auto error_of = [this](ibv_qp_type type, auto change) {
    ibv_qp_init_attr_ex a{};
    a.qp_type = type;
    a.send_cq = a.recv_cq = node_.cq;
    a.cap.max_send_wr = a.cap.max_recv_wr = 1;
    a.comp_mask = IBV_QP_INIT_ATTR_PD;
    a.pd = node_.pd;
    change(a);
    errno = 0;
    EXPECT_EQ(ibv_create_qp_ex(node_.context, &a), nullptr);
    return errno;
  };
  EXPECT_EQ(error_of(IBV_QPT_RC, [](auto& a) { a.comp_mask |= 1U << 31; }), EOPNOTSUPP);
  EXPECT_EQ(error_of(IBV_QPT_UD,
                     [](auto& a) {
                       a.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
                       a.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
                     }),
            EOPNOTSUPP);
  EXPECT_EQ(error_of(IBV_QPT_UD,
                     [](auto& a) {
                       a.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
                       a.max_tso_header = 64;
                     }),
            EOPNOTSUPP);
  EXPECT_EQ(error_of(IBV_QPT_UC,
                     [](auto& a) {
                       a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
                       a.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
                     }),
            EOPNOTSUPP);
}

// man ibv_create_cq_ex: the domain is a parent domain, for its allocator.
TEST_F(DeviceVerbs, CompletionQueuesTakeParentDomainsOnly) {
  ibv_cq_init_attr_ex a{};
  a.cqe = 1;
  a.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  for (ibv_pd* const domain : {static_cast<ibv_pd*>(nullptr), node_.pd}) {
    a.parent_domain = domain;
    errno = 0;
    EXPECT_EQ(ibv_create_cq_ex(node_.context, &a), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(DeviceVerbs, AnExtendedQueueKnowsNoOptionsOfABatch) {
  ibv_cq_init_attr_ex a{};
  a.cqe = 1;
  ibv_cq_ex* const cq = ibv_create_cq_ex(node_.context, &a);
  ASSERT_NE(cq, nullptr);
  ibv_poll_cq_attr batch{.comp_mask = 1};
  EXPECT_EQ(ibv_start_poll(cq, &batch), EINVAL);
  batch.comp_mask = 0;
  EXPECT_EQ(ibv_start_poll(cq, &batch), ENOENT);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

// perror() after the call says it, as where a kernel has been asked.
TEST_F(DeviceVerbs, WhatACallReturnsIsInErrnoToo) {
  const auto expect = [](int returned, int error) {
    EXPECT_EQ(returned, error);
    EXPECT_EQ(errno, error);
    errno = 0;
  };
  errno = 0;
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  expect(ibv_modify_qp(node_.qp, &a, IBV_QP_STATE), EINVAL);  // from RESET
  expect(ibv_resize_cq(node_.cq, 0), EINVAL);
  ibv_modify_cq_attr moderation{};
  expect(ibv_modify_cq(node_.cq, &moderation), EINVAL);
  ibv_gid group{};
  expect(ibv_attach_mcast(node_.qp, &group, 0), EINVAL);
  expect(ibv_detach_mcast(node_.qp, &group, 0), EINVAL);
  ibv_ece ece{.vendor_id = 1, .options = 0, .comp_mask = 0};
  expect(ibv_set_ece(node_.qp, &ece), EINVAL);
  expect(ibv_destroy_cq(node_.cq), EBUSY);
}

// In a process that has opened nothing.
TEST(Device, IsOpenedByProgramsThatUroceRunStarted) {
  Process program([](const Line&) {
    unsetenv("UROCE_TREE");
    errno = 0;
    return open_first_device() == nullptr ? errno : 0;
  });
  EXPECT_EQ(program.wait(), ENODEV);
}

TEST_F(DeviceVerbs, LimitsNoRates) {
  ibv_qp_rate_limit_attr limit{};
  EXPECT_EQ(ibv_modify_qp_rate_limit(node_.qp, &limit), EOPNOTSUPP);
}

TEST_F(DeviceVerbs, HasNoCounters) {
  ibv_counters_init_attr attributes{};
  errno = 0;
  EXPECT_EQ(ibv_create_counters(node_.context, &attributes), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace uroce::tests
