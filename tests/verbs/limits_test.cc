// SPDX-License-Identifier: BSD-2-Clause
// What ibv_query_device promises is what there is: N of a kind, and not N + 1; a queue as deep as
// promised, and none deeper. After a refusal everything else still works.
#include <algorithm>
#include <cerrno>

#include "node.h"

namespace uroce::tests {
namespace {

class Limits : public testing::Test {
 protected:
  Limits() : context(open_first_device()), pd(ibv_alloc_pd(context)) {
    EXPECT_EQ(ibv_query_device(context, &attributes), 0);
  }
  ~Limits() override {
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  }

  // Makes objects until one is refused, and destroys them; how many there were.
  template <typename Make, typename Destroy>
  static int count(int limit, Make make, Destroy destroy) {
    std::vector<decltype(make())> made;
    for (int i = 0; i <= limit; ++i) {
      errno = 0;
      auto* const object = make();
      if (object == nullptr) break;
      made.push_back(object);
    }
    EXPECT_EQ(errno, ENOMEM) << "after " << made.size();
    for (auto* object : made) EXPECT_EQ(destroy(object), 0);
    return static_cast<int>(made.size());
  }
  static ibv_qp* make_qp(ibv_pd* pd, ibv_qp_cap capabilities, ibv_cq* cq) {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.qp_type = IBV_QPT_RC;
    a.cap = capabilities;
    return ibv_create_qp(pd, &a);
  }

  ibv_context* context;
  ibv_pd* pd;
  ibv_device_attr attributes{};
};

constexpr ibv_qp_cap kSmall = {
    .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};

TEST_F(Limits, ProtectionDomains) {
  const auto make = [&] { return ibv_alloc_pd(context); };
  EXPECT_EQ(count(attributes.max_pd, make, ibv_dealloc_pd), attributes.max_pd - 1);  // and `pd`
}

TEST_F(Limits, MemoryRegions) {
  std::byte byte{};
  const auto make = [&] { return ibv_reg_mr(pd, &byte, 1, 0); };
  EXPECT_EQ(count(attributes.max_mr, make, ibv_dereg_mr), attributes.max_mr);
}

TEST_F(Limits, CompletionQueues) {
  const auto make = [&] { return ibv_create_cq(context, 1, nullptr, nullptr, 0); };
  EXPECT_EQ(count(attributes.max_cq, make, ibv_destroy_cq), attributes.max_cq);
}

TEST_F(Limits, SharedReceiveQueues) {
  ibv_srq_init_attr a{};
  a.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
  const auto make = [&] { return ibv_create_srq(pd, &a); };
  EXPECT_EQ(count(attributes.max_srq, make, ibv_destroy_srq), attributes.max_srq);
}

TEST_F(Limits, QueuePairs) {
  ibv_cq* cq = ibv_create_cq(context, 1, nullptr, nullptr, 0);
  const auto make = [&] { return make_qp(pd, kSmall, cq); };
  EXPECT_EQ(count(attributes.max_qp, make, ibv_destroy_qp), attributes.max_qp);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Limits, DepthOfACompletionQueue) {
  ibv_cq* cq = ibv_create_cq(context, attributes.max_cqe, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_GE(cq->cqe, attributes.max_cqe);
  EXPECT_EQ(ibv_resize_cq(cq, attributes.max_cqe + 1), EINVAL);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_create_cq(context, attributes.max_cqe + 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_create_cq(context, 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

class QpCapabilities : public Limits {
 protected:
  QpCapabilities() : cq(ibv_create_cq(context, 1, nullptr, nullptr, 0)) {}
  ~QpCapabilities() override { EXPECT_EQ(ibv_destroy_cq(cq), 0); }

  void expect_at_most(std::uint32_t ibv_qp_cap::*field, int limit) {
    ibv_qp_cap capabilities = kSmall;
    capabilities.*field = static_cast<std::uint32_t>(limit);
    ibv_qp* qp = make_qp(pd, capabilities, cq);
    ASSERT_NE(qp, nullptr) << limit;
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    ++(capabilities.*field);
    EXPECT_EQ(make_qp(pd, capabilities, cq), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }

  ibv_cq* cq;
};

TEST_F(QpCapabilities, WorkRequests) {
  expect_at_most(&ibv_qp_cap::max_send_wr, attributes.max_qp_wr);
  expect_at_most(&ibv_qp_cap::max_recv_wr, attributes.max_qp_wr);
}

TEST_F(QpCapabilities, ScatterGatherElements) {
  expect_at_most(&ibv_qp_cap::max_send_sge, attributes.max_sge);
  expect_at_most(&ibv_qp_cap::max_recv_sge, attributes.max_sge);
}

// One work request of as many elements as promised, each of its own bytes.
TEST_F(Limits, ARequestOfAsManyElementsAsPromisedArrivesWhole) {
  Node node(8192, context);
  const auto elements = static_cast<std::uint32_t>(attributes.max_sge);
  ASSERT_EQ(ibv_destroy_qp(node.qp), 0);
  ibv_qp_cap capabilities = kSmall;
  capabilities.max_send_sge = elements;
  node.qp = make_qp(node.pd, capabilities, node.cq);
  ASSERT_NE(node.qp, nullptr);
  const Address self = node.address();
  ASSERT_EQ(node.connect(self), 0);

  constexpr std::size_t kTarget = 4096, kStep = 7, kBytes = 3;
  std::vector<ibv_sge> sges;
  std::vector<std::byte> expected;
  for (std::uint32_t i = 0; i < elements; ++i) {
    std::byte* const piece = &node.memory[i * kStep];
    for (std::size_t b = 0; b < kBytes; ++b) {
      piece[b] = static_cast<std::byte>(i + b + 1);
      expected.push_back(piece[b]);
    }
    sges.push_back({reinterpret_cast<std::uintptr_t>(piece), kBytes, node.mr->lkey});
  }
  ibv_send_wr request{}, *bad = nullptr;
  request.sg_list = sges.data();
  request.num_sge = static_cast<int>(elements);
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = self.memory + kTarget;
  request.wr.rdma.rkey = self.rkey;
  ASSERT_EQ(ibv_post_send(node.qp, &request, &bad), 0);
  ASSERT_EQ(node.wait().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), node.memory.begin() + kTarget));

  request.num_sge = static_cast<int>(elements) + 1;
  sges.push_back(sges.back());
  request.sg_list = sges.data();
  EXPECT_EQ(ibv_post_send(node.qp, &request, &bad), EINVAL);
  EXPECT_EQ(bad, &request);
}

}  // namespace
}  // namespace uroce::tests
