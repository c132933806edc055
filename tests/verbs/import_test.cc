// SPDX-License-Identifier: BSD-2-Clause
// Importing by the calls of stock libibverbs: a device by a duplicate of its descriptor, and what
// was made through it by its handle.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "node.h"

namespace uroce::tests {
namespace {

class Import : public testing::Test {
 protected:
  Import() : imported_(ibv_import_device(dup(node_.context->cmd_fd))) {}
  ~Import() override {
    if (imported_ != nullptr) {
      EXPECT_EQ(ibv_close_device(imported_), 0);
    }
  }

  Node node_;
  ibv_context* imported_;
};

TEST_F(Import, ADeviceHasItsOwnQueuesAndEvents) {
  ASSERT_NE(imported_, nullptr);
  EXPECT_STREQ(ibv_get_device_name(imported_->device), ibv_get_device_name(node_.context->device));
  Node mine(4096, imported_);
  const Address self = mine.address();
  ASSERT_EQ(mine.connect(self), 0);
  ASSERT_EQ(mine.write(self, 64), 0);
  EXPECT_EQ(mine.wait().status, IBV_WC_SUCCESS);
  // A request that may not be is an event, of this context and not of the other.
  Address nowhere = self;
  nowhere.rkey ^= 0x5a5a5a00;
  ASSERT_EQ(mine.write(nowhere, 64), 0);
  EXPECT_NE(mine.wait().status, IBV_WC_SUCCESS);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(imported_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.element.qp, mine.qp);
  ibv_ack_async_event(&event);
  ASSERT_EQ(fcntl(node_.context->async_fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_NE(ibv_get_async_event(node_.context, &event), 0);
}

TEST_F(Import, ADomainAndItsRegionsServeWhatIsMadeInTheOtherContext) {
  ASSERT_NE(imported_, nullptr);
  ibv_pd* const pd = ibv_import_pd(imported_, node_.pd->handle);
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(pd->handle, node_.pd->handle);
  ibv_mr* const mr = ibv_import_mr(pd, node_.mr->handle);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, nullptr);
  EXPECT_EQ(mr->lkey, node_.mr->lkey);
  EXPECT_EQ(mr->length, node_.mr->length);

  ibv_cq* const cq = ibv_create_cq(imported_, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr a{};
  a.send_cq = a.recv_cq = cq;
  a.qp_type = IBV_QPT_RC;
  a.cap = {.max_send_wr = 4,
           .max_recv_wr = 4,
           .max_send_sge = 1,
           .max_recv_sge = 1,
           .max_inline_data = 0};
  ibv_qp* const qp = ibv_create_qp(pd, &a);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  ibv_unimport_mr(mr);
  ibv_unimport_pd(pd);
  // The originals are as they were.
  const Address self = node_.address();
  ASSERT_EQ(node_.connect(self), 0);
  ASSERT_EQ(node_.write(self, 64), 0);
  EXPECT_EQ(node_.wait().status, IBV_WC_SUCCESS);
}

// man ibv_import_mr: either end may destroy it, and the other is then only unimported.
TEST_F(Import, WhoeverDeregistersEndsTheRegion) {
  ASSERT_NE(imported_, nullptr);
  ibv_pd* const pd = ibv_import_pd(imported_, node_.pd->handle);
  std::array<std::byte, 64> memory{};
  ibv_mr* const original = ibv_reg_mr(node_.pd, memory.data(), 64, int{IBV_ACCESS_REMOTE_READ});
  ibv_mr* const mr = ibv_import_mr(pd, original->handle);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_import_mr(pd, original->handle), nullptr);
  EXPECT_EQ(errno, ENOENT);
  ibv_unimport_mr(original);
  ibv_unimport_pd(pd);
}

TEST_F(Import, DeviceMemoryIsOneMemory) {
  ASSERT_NE(imported_, nullptr);
  ibv_alloc_dm_attr attributes{};
  attributes.length = 4'096;
  ibv_dm* const dm = ibv_alloc_dm(node_.context, &attributes);
  ASSERT_NE(dm, nullptr);
  ibv_dm* const same = ibv_import_dm(imported_, dm->handle);
  ASSERT_NE(same, nullptr);
  const std::uint32_t word = 0x12345678;
  std::uint32_t got = 0;
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 64, &word, sizeof(word)), 0);
  EXPECT_EQ(ibv_memcpy_from_dm(&got, same, 64, sizeof(got)), 0);
  EXPECT_EQ(got, word);
  ibv_unimport_dm(same);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  EXPECT_EQ(ibv_import_dm(imported_, 1), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(Import, WhatIsNotThereIsNotImported) {
  ASSERT_NE(imported_, nullptr);
  EXPECT_EQ(ibv_import_pd(imported_, 0xffff'0000), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(ibv_import_mr(node_.pd, node_.mr->handle ^ 0x100), nullptr);
  EXPECT_EQ(errno, ENOENT);
  // Nobody has opened a device by this one.
  const int other = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_EQ(ibv_import_device(other), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  close(other);
}

// man ibv_open_qp: a target of XRC, by its number.
TEST(OpenQp, NeedsAllThatNamesATarget) {
  Node node;
  ASSERT_TRUE(node.is_ready());
  ibv_xrcd_init_attr domain{
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
  ibv_xrcd* const xrcd = ibv_open_xrcd(node.context, &domain);
  ASSERT_NE(xrcd, nullptr);
  ibv_qp_init_attr_ex target{};
  target.qp_type = IBV_QPT_XRC_RECV;
  target.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  target.xrcd = xrcd;
  ibv_qp* const qp = ibv_create_qp_ex(node.context, &target);
  ASSERT_NE(qp, nullptr);
  constexpr std::uint32_t kAll =
      IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  const auto error_of = [&](std::uint32_t mask, ibv_qp_type type) {
    ibv_qp_open_attr a{};
    a.comp_mask = mask;
    a.qp_num = qp->qp_num;
    a.xrcd = xrcd;
    a.qp_type = type;
    ibv_qp* const opened = ibv_open_qp(node.context, &a);
    if (opened == nullptr) return errno;
    EXPECT_EQ(ibv_destroy_qp(opened), 0);
    return 0;
  };
  EXPECT_EQ(error_of(kAll, IBV_QPT_XRC_RECV), 0);
  EXPECT_EQ(error_of(kAll | 1U << 31, IBV_QPT_XRC_RECV), EOPNOTSUPP);
  EXPECT_EQ(error_of(kAll, IBV_QPT_RC), EINVAL);
  for (const std::uint32_t part :
       {IBV_QP_OPEN_ATTR_NUM, IBV_QP_OPEN_ATTR_XRCD, IBV_QP_OPEN_ATTR_TYPE}) {
    EXPECT_EQ(error_of(kAll & ~part, IBV_QPT_XRC_RECV), EINVAL) << part;
  }
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
}

}  // namespace
}  // namespace uroce::tests
