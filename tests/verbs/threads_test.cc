// SPDX-License-Identifier: BSD-2-Clause
// Many threads on one device: objects come and go while others carry traffic; notifications are not
// lost between a request and a poll.
#include <array>
#include <barrier>
#include <thread>
#include <vector>

#include "node.h"

namespace uroce::tests {
namespace {

void create_use_destroy(ibv_context* context, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    Node node(4096, context);
    ASSERT_TRUE(node.is_ready());
    const Address self = node.address();
    ASSERT_EQ(node.connect(self), 0);
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(node.write(self, 512), 0);
      ASSERT_EQ(node.wait().status, IBV_WC_SUCCESS);
    }
  }
}

TEST(Threads, EightCreateUseAndDestroyAtOnce) {
  ibv_context* context = open_first_device();
  ASSERT_NE(context, nullptr);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(create_use_destroy, context, 10);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ibv_close_device(context), 0);
}

// The first of them brings a block of numbers, and the others have theirs out of it.
TEST(Threads, TheFirstQueuePairsOfADeviceAreMadeAtOnce) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 60; ++round) {
    ibv_context* context = open_first_device();
    ASSERT_NE(context, nullptr);
    ibv_pd* pd = ibv_alloc_pd(context);
    ibv_cq* cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
    std::array<ibv_qp*, kThreads> qps{};
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (ibv_qp*& qp : qps) {
      threads.emplace_back([&start, &qp, pd, cq] {
        ibv_qp_init_attr attributes{};
        attributes.send_cq = attributes.recv_cq = cq;
        attributes.qp_type = IBV_QPT_RC;
        attributes.cap.max_send_wr = attributes.cap.max_recv_wr = 1;
        attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
        start.arrive_and_wait();
        qp = ibv_create_qp(pd, &attributes);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (ibv_qp* qp : qps) {
      ASSERT_NE(qp, nullptr);
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  }
}

TEST(Threads, NoNotificationIsLost) {
  ibv_context* context = open_first_device();
  ASSERT_NE(context, nullptr);
  {
    ibv_comp_channel* channel = ibv_create_comp_channel(context);
    ASSERT_NE(channel, nullptr);
    Node node(4096, context);
    Node target(4096, context);
    ASSERT_TRUE(node.is_ready() && target.is_ready());
    ibv_cq* announced = ibv_create_cq(context, 256, nullptr, channel, 0);
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = announced;
    a.qp_type = IBV_QPT_RC;
    a.cap = {.max_send_wr = 16,
             .max_recv_wr = 16,
             .max_send_sge = 1,
             .max_recv_sge = 1,
             .max_inline_data = 0};
    ASSERT_EQ(ibv_destroy_qp(node.qp), 0);
    node.qp = ibv_create_qp(node.pd, &a);
    ASSERT_NE(node.qp, nullptr);
    const Address to = target.address();
    ASSERT_EQ(node.connect(to), 0);
    ASSERT_EQ(target.connect(node.address()), 0);
    for (int i = 0; i < 500; ++i) {
      ASSERT_EQ(ibv_req_notify_cq(announced, 0), 0);
      ASSERT_EQ(node.write(to, 8), 0);
      ibv_cq* told = nullptr;
      void* user = nullptr;
      ASSERT_EQ(ibv_get_cq_event(channel, &told, &user), 0);
      EXPECT_EQ(told, announced);
      ibv_ack_cq_events(told, 1);
      ibv_wc wc{};
      ASSERT_EQ(ibv_poll_cq(announced, 1, &wc), 1);
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    }
    ASSERT_EQ(ibv_destroy_qp(node.qp), 0);
    node.qp = nullptr;
    EXPECT_EQ(ibv_destroy_cq(announced), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  }
  EXPECT_EQ(ibv_close_device(context), 0);
}

}  // namespace
}  // namespace uroce::tests
