// SPDX-License-Identifier: BSD-2-Clause
// Queues that are filled to the last place that ibv_query_device promises, and one request more.
#include <cerrno>

#include "node.h"

namespace uroce::tests {
namespace {

class Depth : public testing::Test {
 protected:
  Depth() : context(open_first_device()), pd(ibv_alloc_pd(context)) {
    EXPECT_EQ(ibv_query_device(context, &attributes), 0);
  }
  ~Depth() override {
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  }
  ibv_qp* make_qp(ibv_cq* cq, int sends, int receives) {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.qp_type = IBV_QPT_RC;
    a.cap = {.max_send_wr = static_cast<std::uint32_t>(sends),
             .max_recv_wr = static_cast<std::uint32_t>(receives),
             .max_send_sge = 1,
             .max_recv_sge = 1,
             .max_inline_data = 0};
    return ibv_create_qp(pd, &a);
  }
  static int to_init(ibv_qp* qp) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    return ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  static int to_error(ibv_qp* qp) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_ERR;
    return ibv_modify_qp(qp, &a, IBV_QP_STATE);
  }
  // How many are taken, numbered from 0, until one is refused; at most `most`.
  template <typename Post>
  static int fill(Post post, int most) {
    ibv_recv_wr request{}, *bad = nullptr;
    int error = 0;
    int count = 0;
    for (; count < most && error == 0; ++count) {
      request.wr_id = static_cast<std::uint64_t>(count);
      error = post(&request, &bad);
    }
    if (error == 0) return count;
    EXPECT_EQ(error, ENOMEM);
    EXPECT_EQ(bad, &request);
    return count - 1;
  }
  static int fill_receives(ibv_qp* qp, int most) {
    return fill([qp](ibv_recv_wr* r, ibv_recv_wr** bad) { return ibv_post_recv(qp, r, bad); },
                most);
  }
  // The next `count` completions are of the queue pair's receives, flushed, in order.
  static void expect_flushed(ibv_cq* cq, const ibv_qp* qp, int count) {
    for (int i = 0; i < count; ++i) {
      ibv_wc wc{};
      ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1) << i;
      ASSERT_EQ(wc.wr_id, static_cast<std::uint64_t>(i));
      ASSERT_EQ(wc.qp_num, qp->qp_num);
      ASSERT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
  }

  ibv_context* context;
  ibv_pd* pd;
  ibv_device_attr attributes{};
};

TEST_F(Depth, OfReceiveQueuesAndTheCompletionQueueBehindThem) {
  ibv_cq* const cq = ibv_create_cq(context, attributes.max_cqe, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  std::vector<std::pair<ibv_qp*, int>> filled;
  for (int left = attributes.max_cqe; left > 0; left -= filled.back().second) {
    ibv_qp* const qp = make_qp(cq, 1, attributes.max_qp_wr);
    ASSERT_NE(qp, nullptr);
    ASSERT_EQ(to_init(qp), 0);
    filled.emplace_back(qp, fill_receives(qp, left));
    const bool is_full = left > attributes.max_qp_wr;
    ASSERT_EQ(filled.back().second, is_full ? attributes.max_qp_wr : left);
  }
  for (const auto& [qp, count] : filled) ASSERT_EQ(to_error(qp), 0);
  for (const auto& [qp, count] : filled) expect_flushed(cq, qp, count);
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  for (const auto& [qp, count] : filled) EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Depth, OfASharedReceiveQueue) {
  ibv_srq_init_attr a{};
  a.attr = {
      .max_wr = static_cast<std::uint32_t>(attributes.max_srq_wr), .max_sge = 1, .srq_limit = 0};
  ibv_srq* const srq = ibv_create_srq(pd, &a);
  ASSERT_NE(srq, nullptr);
  const auto post = [srq](ibv_recv_wr* r, ibv_recv_wr** bad) {
    return ibv_post_srq_recv(srq, r, bad);
  };
  EXPECT_EQ(fill(post, attributes.max_srq_wr + 1), attributes.max_srq_wr);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

// A request without a completion gives its place back by that of a later one.
TEST_F(Depth, OfASendQueue) {
  Node node(64, context);
  ASSERT_EQ(ibv_destroy_qp(node.qp), 0);
  ASSERT_NE(node.qp = make_qp(node.cq, attributes.max_qp_wr, 1), nullptr);
  const Address self = node.address();
  ASSERT_EQ(node.connect(self), 0);
  ibv_send_wr request{}, *bad = nullptr;
  request.opcode = IBV_WR_RDMA_WRITE;
  for (int i = 1; i < attributes.max_qp_wr; ++i) {
    ASSERT_EQ(ibv_post_send(node.qp, &request, &bad), 0) << i;
  }
  request.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(ibv_post_send(node.qp, &request, &bad), 0);
  EXPECT_EQ(ibv_post_send(node.qp, &request, &bad), ENOMEM);
  EXPECT_EQ(node.wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_post_send(node.qp, &request, &bad), 0);
  EXPECT_EQ(node.wait().status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace uroce::tests
