// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous events of objects. Those of the port need an interface that changes, and are in
// tests/apps/port_events.py.
#include <poll.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "datagram_end.h"
#include "node.h"

namespace uroce::tests {
namespace {

// The next event; with a deadline, since none would be the failure.
ibv_event_type next_event(ibv_context* context, ibv_async_event& event) {
  pollfd readable{context->async_fd, POLLIN, 0};
  if (poll(&readable, 1, 10'000) != 1 || ibv_get_async_event(context, &event) != 0) {
    ADD_FAILURE() << "no event";
    return IBV_EVENT_DEVICE_FATAL;
  }
  ibv_ack_async_event(&event);
  return event.event_type;
}

TEST(CqOverrun, IsTwoEventsAndEndsQueueAndQp) {
  Node node(4096, nullptr, 1);
  ASSERT_TRUE(node.is_ready());
  const Address self = node.address();
  ASSERT_EQ(node.connect(self), 0);
  // Room for one completion, and two come. What has been seen is not polled.
  ASSERT_EQ(node.write(self, 8), 0);
  ASSERT_EQ(node.write(self, 8), 0);

  bool cq_error = false, qp_fatal = false;
  for (int i = 0; i < 2; ++i) {
    ibv_async_event event{};
    const ibv_event_type type = next_event(node.context, event);
    cq_error |= type == IBV_EVENT_CQ_ERR && event.element.cq == node.cq;
    qp_fatal |= type == IBV_EVENT_QP_FATAL && event.element.qp == node.qp;
  }
  EXPECT_TRUE(cq_error);
  EXPECT_TRUE(qp_fatal);

  ibv_wc wc{};
  while (ibv_poll_cq(node.cq, 1, &wc) > 0) {
  }
  EXPECT_LT(ibv_poll_cq(node.cq, 1, &wc), 0);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(node.qp, &attributes, IBV_QP_STATE, &initial), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_ERR);
}

TEST(CqOverrun, IsAnEventOfEachQueuePairThatLostACompletion) {
  Node node(4096, nullptr, 1);
  ASSERT_TRUE(node.is_ready());
  ibv_qp_init_attr a{};
  a.send_cq = a.recv_cq = node.cq;
  a.qp_type = IBV_QPT_RC;
  a.cap.max_send_wr = a.cap.max_send_sge = 2;
  ibv_qp* const qps[] = {node.qp, ibv_create_qp(node.pd, &a)};
  for (ibv_qp* const qp : qps) {
    ASSERT_NE(node.qp = qp, nullptr);
    const Address self = node.address();
    ASSERT_EQ(node.connect(self), 0);
    ASSERT_EQ(node.write(self, 8), 0);
    ASSERT_EQ(node.write(self, 8), 0);
  }
  node.qp = qps[0];
  std::multiset<void*> of;
  for (int i = 0; i < 3; ++i) {
    ibv_async_event event{};
    const bool is_of_cq = next_event(node.context, event) == IBV_EVENT_CQ_ERR;
    EXPECT_TRUE(is_of_cq || event.event_type == IBV_EVENT_QP_FATAL);
    of.insert(is_of_cq ? static_cast<void*>(event.element.cq) : event.element.qp);
  }
  EXPECT_EQ(of, (std::multiset<void*>{node.cq, qps[0], qps[1]}));
  EXPECT_EQ(ibv_destroy_qp(qps[1]), 0);
}

TEST(CqOverrun, DoesNotTouchOtherQueues) {
  ibv_context* context = open_first_device();
  ASSERT_NE(context, nullptr);
  {
    Node small(4096, context, 1), other(4096, context);
    ASSERT_TRUE(small.is_ready() && other.is_ready());
    const Address of_small = small.address(), of_other = other.address();
    ASSERT_EQ(small.connect(of_small), 0);
    ASSERT_EQ(other.connect(of_other), 0);
    ASSERT_EQ(small.write(of_small, 8), 0);
    ASSERT_EQ(small.write(of_small, 8), 0);
    ibv_async_event event{};
    next_event(context, event);
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(other.write(of_other, 8), 0);
      ASSERT_EQ(other.wait().status, IBV_WC_SUCCESS);
    }
  }
  EXPECT_EQ(ibv_close_device(context), 0);
}

ibv_ah* own_address(Node& node) {
  ibv_ah_attr a{};
  a.is_global = a.port_num = 1;
  a.grh.dgid = node.address().gid;
  return ibv_create_ah(node.pd, &a);
}

// Events are read in the order in which they were raised, so the next one shows that there was
// none in between.
TEST(CommunicationEstablished, IsToldOnceOfAConnectionAndNotOfDatagrams) {
  Node a;
  ASSERT_TRUE(a.is_ready());
  Node b(4096, a.context);
  DatagramEnd asks(a, 0), hears(a, 2048, IBV_QPS_RTR);
  ibv_ah* const there = own_address(a);
  ASSERT_NE(there, nullptr);
  ASSERT_EQ(asks.send(there, hears.qp->qp_num, 1), 0);
  EXPECT_EQ(hears.wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_destroy_ah(there), 0);
  Address to = b.address();
  ASSERT_EQ(b.connect(a.address(), IBV_QPS_RTR), 0);
  ASSERT_EQ(a.connect(to), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(b.receive(), 0);
    ASSERT_EQ(a.write(to, 0, IBV_WR_SEND), 0);
    EXPECT_EQ(b.wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a.wait().status, IBV_WC_SUCCESS);
  }
  to.rkey ^= 0x5a5a5a00;
  ASSERT_EQ(a.write(to, 64), 0);
  EXPECT_EQ(a.wait().status, IBV_WC_REM_ACCESS_ERR);
  for (const ibv_event_type expected : {IBV_EVENT_COMM_EST, IBV_EVENT_QP_ACCESS_ERR}) {
    ibv_async_event event{};
    EXPECT_EQ(next_event(a.context, event), expected);
    EXPECT_EQ(event.element.qp, b.qp);
  }
}

// man ibv_get_async_event: to destroy waits for the acknowledgement.
TEST(Acknowledgement, IsWaitedForByWhoDestroys) {
  Node a;
  ASSERT_TRUE(a.is_ready());
  Address self = a.address();
  ASSERT_EQ(a.connect(self), 0);
  self.rkey ^= 0x5a5a5a00;
  ASSERT_EQ(a.write(self, 64), 0);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(a.context, &event), 0);
  ASSERT_EQ(event.element.qp, a.qp);
  std::atomic<bool> is_acknowledged = false;
  std::atomic<bool> is_destroyed = false;
  std::thread other([&] {
    ibv_qp* const qp = std::exchange(a.qp, nullptr);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_TRUE(is_acknowledged);
    is_destroyed = true;
  });
  // Long enough for whoever does not wait.
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
       std::chrono::steady_clock::now() < end && !is_destroyed;) {
    std::this_thread::yield();
  }
  is_acknowledged = true;
  ibv_ack_async_event(&event);
  other.join();
}

}  // namespace
}  // namespace uroce::tests
