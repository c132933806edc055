// SPDX-License-Identifier: BSD-2-Clause
// Memory windows by the calls of stock libibverbs, between two queue pairs of one device.
#include <cerrno>

#include "datagram_end.h"
#include "node.h"

namespace uroce::tests {
namespace {

class MemoryWindow : public testing::Test {
 protected:
  MemoryWindow() {
    if (!node_.is_ready()) return;
    self_ = node_.address();
    EXPECT_EQ(node_.connect(peer_.address()), 0);
    EXPECT_EQ(peer_.connect(self_), 0);
    region_ = ibv_reg_mr(node_.pd, node_.memory.data(), node_.memory.size(),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    info_ = {region_, self_.memory, 1024, IBV_ACCESS_REMOTE_WRITE};
  }
  ~MemoryWindow() override {
    if (region_ != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(region_), 0);
    }
  }

  ibv_wc_status write_with(std::uint32_t rkey) {
    Address to = self_;
    to.rkey = rkey;
    EXPECT_EQ(peer_.write(to, 64), 0);
    return peer_.wait().status;
  }
  int post(ibv_send_wr request) {
    ibv_send_wr* bad = nullptr;
    request.send_flags = IBV_SEND_SIGNALED;
    return ibv_post_send(node_.qp, &request, &bad);
  }

  Node node_;
  Node peer_{4096, node_.context};
  Address self_{};
  ibv_mr* region_ = nullptr;
  ibv_mw_bind_info info_{};
};

TEST_F(MemoryWindow, OfType1IsBoundByItsCallAndGoesWithDealloc) {
  ASSERT_NE(region_, nullptr);
  ibv_mw* mw = ibv_alloc_mw(node_.pd, IBV_MW_TYPE_1);
  ASSERT_NE(mw, nullptr);
  const std::uint32_t before = mw->rkey;
  ibv_mw_bind bind{.wr_id = 5, .send_flags = IBV_SEND_SIGNALED, .bind_info = info_};
  ASSERT_EQ(ibv_bind_mw(node_.qp, mw, &bind), 0);
  EXPECT_NE(mw->rkey, before);
  const ibv_wc bound = node_.wait();
  EXPECT_EQ(bound.status, IBV_WC_SUCCESS);
  EXPECT_EQ(bound.opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(bound.wr_id, 5U);
  EXPECT_EQ(write_with(mw->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(region_), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(node_.pd), EBUSY);
  const std::uint32_t key = mw->rkey;
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(write_with(key), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindow, OfType2IsBoundAndInvalidatedInTheSendQueue) {
  ASSERT_NE(region_, nullptr);
  ibv_mw* mw = ibv_alloc_mw(node_.pd, IBV_MW_TYPE_2);
  ASSERT_NE(mw, nullptr);
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ibv_send_wr bind{};
  bind.opcode = IBV_WR_BIND_MW;
  bind.bind_mw = {mw, key, info_};
  ASSERT_EQ(post(bind), 0);
  EXPECT_EQ(node_.wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(write_with(key), IBV_WC_SUCCESS);
  ibv_send_wr invalidate{};
  invalidate.opcode = IBV_WR_LOCAL_INV;
  invalidate.invalidate_rkey = key;
  ASSERT_EQ(post(invalidate), 0);
  EXPECT_EQ(node_.wait().opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(write_with(key), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(MemoryWindow, IsBoundWhereThatMakesSenseAndThereIsRoom) {
  ASSERT_NE(region_, nullptr);
  ibv_mw* const mw = ibv_alloc_mw(node_.pd, IBV_MW_TYPE_1);
  ASSERT_NE(mw, nullptr);
  ibv_mw_bind bind{.wr_id = 0, .send_flags = IBV_SEND_SIGNALED, .bind_info = info_};
  bind.bind_info.mr = peer_.mr;  // of another domain
  EXPECT_EQ(ibv_bind_mw(node_.qp, mw, &bind), EPERM);
  bind.bind_info.mr = region_;
  const Node idle(64, node_.context);
  EXPECT_EQ(ibv_bind_mw(idle.qp, mw, &bind), EINVAL);  // not in RTS yet
  const DatagramEnd datagrams(node_);
  EXPECT_EQ(ibv_bind_mw(datagrams.qp, mw, &bind), EINVAL);
  int bound = 0;
  int error = 0;
  while ((error = ibv_bind_mw(node_.qp, mw, &bind)) == 0) ++bound;
  EXPECT_EQ(error, ENOMEM);
  for (int i = 0; i < bound; ++i) EXPECT_EQ(node_.wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_bind_mw(node_.qp, mw, &bind), 0);
  EXPECT_EQ(node_.wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

}  // namespace
}  // namespace uroce::tests
