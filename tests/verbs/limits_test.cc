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

TEST_F(Limits, MemoryWindows) {
  const auto make = [&] { return ibv_alloc_mw(pd, IBV_MW_TYPE_2); };
  EXPECT_EQ(count(attributes.max_mw, make, ibv_dealloc_mw), attributes.max_mw);
}

TEST_F(Limits, AddressHandles) {
  ibv_ah_attr a{};
  a.is_global = 1;
  a.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context, 1, 0, &a.grh.dgid), 0);
  const auto make = [&] { return ibv_create_ah(pd, &a); };
  EXPECT_EQ(count(attributes.max_ah, make, ibv_destroy_ah), attributes.max_ah);
}

TEST_F(Limits, SharedReceiveQueuesAsDeepAndAsWideAsPromised) {
  const auto make = [&](int requests, int elements) {
    ibv_srq_init_attr a{};
    a.attr.max_wr = static_cast<std::uint32_t>(requests);
    a.attr.max_sge = static_cast<std::uint32_t>(elements);
    errno = 0;
    ibv_srq* const srq = ibv_create_srq(pd, &a);
    return srq == nullptr ? errno : ibv_destroy_srq(srq);
  };
  EXPECT_EQ(make(attributes.max_srq_wr, 1), 0);
  EXPECT_EQ(make(attributes.max_srq_wr + 1, 1), EINVAL);
  EXPECT_EQ(make(1, attributes.max_srq_sge), 0);
  EXPECT_EQ(make(1, attributes.max_srq_sge + 1), EINVAL);
}

// Those that Linux's rxe stays below, so that none becomes smaller unseen.
TEST_F(Limits, AreAsLargeAsTheyWereMeantToBe) {
  EXPECT_EQ(attributes.max_sge, 64);
  EXPECT_EQ(attributes.max_srq_sge, 64);
  EXPECT_EQ(attributes.max_cqe, 4'194'303);
  EXPECT_EQ(attributes.max_qp_wr, 1'048'576);
  EXPECT_EQ(attributes.max_srq_wr, 1'048'576);
  EXPECT_EQ(attributes.max_qp_rd_atom, 128);
  EXPECT_EQ(attributes.max_qp_init_rd_atom, 128);
  EXPECT_GE(attributes.max_mr, 1'000'000);
  EXPECT_EQ(attributes.max_qp, 16'384);
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

TEST_F(QpCapabilities, InlineBytes) { expect_at_most(&ibv_qp_cap::max_inline_data, 4'096); }

TEST_F(Limits, ThousandsOfInlineBytesArriveWhole) {
  constexpr std::uint32_t kInline = 4'096;
  Node node(2 * kInline, context);
  ASSERT_EQ(ibv_destroy_qp(node.qp), 0);
  ibv_qp_cap capabilities = kSmall;
  capabilities.max_inline_data = kInline;
  node.qp = make_qp(node.pd, capabilities, node.cq);
  ASSERT_NE(node.qp, nullptr);
  Address self = node.address();
  ASSERT_EQ(node.connect(self), 0);
  std::vector<std::byte> data(kInline + 1);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);

  ibv_sge sge{reinterpret_cast<std::uintptr_t>(data.data()), kInline, 0};
  ibv_send_wr request{}, *bad = nullptr;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  request.wr.rdma = {self.memory + kInline, self.rkey};
  ASSERT_EQ(ibv_post_send(node.qp, &request, &bad), 0);
  ASSERT_EQ(node.wait().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(std::equal(data.begin(), data.end() - 1, node.memory.begin() + kInline));
  ++sge.length;
  EXPECT_EQ(ibv_post_send(node.qp, &request, &bad), EINVAL);
}

// As many READs as promised are under way at once, and no queue pair is promised one more.
TEST_F(Limits, OutstandingReads) {
  Node node(4'096, context);
  const Address self = node.address();
  const auto connect_with = [&](int depth) {
    node.read_depth = static_cast<std::uint8_t>(depth);
    ibv_qp_attr reset{};
    reset.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(ibv_modify_qp(node.qp, &reset, IBV_QP_STATE), 0);
    return node.connect(self);
  };
  EXPECT_EQ(connect_with(attributes.max_qp_rd_atom + 1), EINVAL);
  // The same queue pair with few, then with all.
  ASSERT_EQ(connect_with(1), 0);
  ASSERT_EQ(node.write(self, 32, IBV_WR_RDMA_READ), 0);
  ASSERT_EQ(node.wait().status, IBV_WC_SUCCESS);
  ASSERT_EQ(connect_with(attributes.max_qp_rd_atom), 0);
  for (int i = 0; i < attributes.max_qp_rd_atom; ++i) {
    ASSERT_EQ(node.write(self, 32, IBV_WR_RDMA_READ), 0) << i;
  }
  for (int i = 0; i < attributes.max_qp_rd_atom; ++i) {
    ASSERT_EQ(node.wait().status, IBV_WC_SUCCESS) << i;
  }
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
