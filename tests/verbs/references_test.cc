// SPDX-License-Identifier: BSD-2-Clause
// What keeps what: to destroy an object that others use is EBUSY, which errno says too, and
// afterwards it is there as before. Objects that have a test file of their own are asked there.
#include <unistd.h>

#include <array>
#include <cerrno>

#include "node.h"

namespace uroce::tests {
namespace {

class References : public testing::Test {
 protected:
  References() {
    if (context_ == nullptr) return;
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  }
  ~References() override {
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }
  void SetUp() override { ASSERT_TRUE(pd_ != nullptr && cq_ != nullptr); }

  static void expect_busy(int error) {
    EXPECT_EQ(error, EBUSY);
    EXPECT_EQ(errno, EBUSY);
    errno = 0;
  }

  ibv_context* context_ = open_first_device();
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
};

TEST_F(References, AQueuePairKeepsItsDomainAndItsCompletionQueue) {
  ibv_qp_init_attr a{};
  a.send_cq = a.recv_cq = cq_;
  a.qp_type = IBV_QPT_RC;
  a.cap.max_send_wr = 1;
  ibv_qp* const qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  expect_busy(ibv_dealloc_pd(pd_));
  expect_busy(ibv_destroy_cq(cq_));
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(References, ASharedReceiveQueueKeepsItsDomain) {
  ibv_srq_init_attr a{};
  a.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
  ibv_srq* const srq = ibv_create_srq(pd_, &a);
  ASSERT_NE(srq, nullptr);
  expect_busy(ibv_dealloc_pd(pd_));
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(References, AnAddressHandleKeepsItsDomain) {
  ibv_ah_attr a{};
  a.is_global = a.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &a.grh.dgid), 0);
  ibv_ah* const ah = ibv_create_ah(pd_, &a);
  ASSERT_NE(ah, nullptr);
  expect_busy(ibv_dealloc_pd(pd_));
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST_F(References, ASharedReceiveQueueOfXrcKeepsItsCompletionQueueAndDomains) {
  ibv_xrcd_init_attr domain{
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = 0};
  ibv_xrcd* const xrcd = ibv_open_xrcd(context_, &domain);
  ASSERT_NE(xrcd, nullptr);
  ibv_srq_init_attr_ex a{};
  a.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
  a.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  a.srq_type = IBV_SRQT_XRC;
  a.pd = pd_;
  a.xrcd = xrcd;
  a.cq = cq_;
  ibv_srq* const srq = ibv_create_srq_ex(context_, &a);
  ASSERT_NE(srq, nullptr);
  expect_busy(ibv_destroy_cq(cq_));
  expect_busy(ibv_dealloc_pd(pd_));
  expect_busy(ibv_close_xrcd(xrcd));
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
}

TEST_F(References, ACompletionQueueKeepsItsChannel) {
  ibv_comp_channel* const channel = ibv_create_comp_channel(context_);
  ASSERT_NE(channel, nullptr);
  ibv_cq* const cq = ibv_create_cq(context_, 1, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

// One domain, by whichever handle it is named.
TEST_F(References, WhatWasMadeThroughAnImportedDomainKeepsTheOriginal) {
  ibv_context* const other = ibv_import_device(dup(context_->cmd_fd));
  ASSERT_NE(other, nullptr);
  ibv_pd* const imported = ibv_import_pd(other, pd_->handle);
  ASSERT_NE(imported, nullptr);
  std::array<std::byte, 64> memory{};
  ibv_mr* const mr =
      ibv_reg_mr(imported, memory.data(), memory.size(), int{IBV_ACCESS_LOCAL_WRITE});
  ASSERT_NE(mr, nullptr);
  expect_busy(ibv_dealloc_pd(pd_));
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ibv_unimport_pd(imported);
  EXPECT_EQ(ibv_close_device(other), 0);
}

}  // namespace
}  // namespace uroce::tests
