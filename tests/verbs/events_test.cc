// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous events of objects. Those of the port need an interface that changes, and are in
// tests/apps/port_events.py.
#include <poll.h>

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

}  // namespace
}  // namespace uroce::tests
