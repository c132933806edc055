// SPDX-License-Identifier: BSD-2-Clause
// Memory on demand and null regions, between two queue pairs of one engine; and what ibv_advise_mr
// says. That the process lives is part of every one of these tests.
#include "support/mapping.h"
#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

using test::kPage;
using test::Mapping;

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                     IBV_ACCESS_REMOTE_ATOMIC;
constexpr int kOnDemand = kAll | IBV_ACCESS_ON_DEMAND;

class OdpTest : public VerbsTest {
 protected:
  OdpTest() : a_(make_qp()), b_(make_qp()) {
    connect(*a_, *b_);
    present_ = make_mr(memory_.data(), memory_.size(), kAll);
  }
  ibv_wc_status run(ibv_wr_opcode opcode, void* local, std::uint32_t lkey, void* remote,
                    std::uint32_t rkey, std::uint32_t bytes = 64) {
    SendRequest request(opcode, local, bytes, lkey);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      request.wr.atomic.remote_addr = reinterpret_cast<std::uintptr_t>(remote);
      request.wr.atomic.rkey = rkey;
      request.wr.atomic.compare_add = 1;
    } else {
      request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(remote);
      request.wr.rdma.rkey = rkey;
    }
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post_send(*a_, &request, &bad), 0);
    return wait_for(1).front().status;
  }
  ibv_wc_status to(ibv_wr_opcode opcode, void* remote, const Mr& mr) {
    const std::uint32_t bytes = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 64;
    return run(opcode, memory_.data(), present_->region.key, remote, mr.region.key, bytes);
  }
  ibv_wc_status from(ibv_wr_opcode opcode, void* local, const Mr& mr) {
    return run(opcode, local, mr.region.key, memory_.data(), present_->region.key);
  }
  int advise(ibv_advise_mr_advice advice, std::uint64_t address, std::uint32_t length,
             std::uint32_t lkey, std::uint32_t flags = IBV_ADVISE_MR_FLAG_FLUSH) {
    const ibv_sge range{address, length, lkey};
    return advise_mr(*pd_, advice, flags, {&range, 1});
  }

  alignas(8) std::array<std::byte, 256> memory_{};
  Qp* a_;
  Qp* b_;
  Mr* present_ = nullptr;
};

TEST_F(OdpTest, IsRegisteredWithoutBeingTouchedOrEvenThere) {
  const Mapping mapping(4 * kPage);
  EXPECT_NE(make_mr(mapping.address, mapping.length, kOnDemand), nullptr);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(mapping.is_resident(i));
  mapping.unmap_page(1);
  EXPECT_NE(make_mr(mapping.address, mapping.length, kOnDemand), nullptr);
  EXPECT_NE(make_mr(nullptr, SIZE_MAX, kOnDemand), nullptr);
}

TEST_F(OdpTest, EveryOperationReachesIt) {
  const Mapping mapping(4 * kPage);
  memory_.fill(std::byte{0x5a});
  for (Mr* mr : {make_mr(mapping.address, mapping.length, kOnDemand),
                 make_mr(nullptr, SIZE_MAX, kOnDemand)}) {
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(to(IBV_WR_RDMA_WRITE, mapping.bytes(), *mr), IBV_WC_SUCCESS);
    EXPECT_EQ(mapping.bytes()[63], std::byte{0x5a});
    EXPECT_EQ(to(IBV_WR_RDMA_READ, mapping.bytes() + kPage, *mr), IBV_WC_SUCCESS);
    EXPECT_EQ(memory_[0], std::byte{0});
    EXPECT_EQ(to(IBV_WR_ATOMIC_FETCH_AND_ADD, mapping.bytes() + 2 * kPage, *mr), IBV_WC_SUCCESS);
    EXPECT_EQ(from(IBV_WR_RDMA_READ, mapping.bytes() + kPage, *mr), IBV_WC_SUCCESS);
    EXPECT_EQ(from(IBV_WR_RDMA_WRITE, mapping.bytes() + 3 * kPage, *mr), IBV_WC_SUCCESS);
    memory_.fill(std::byte{0x5a});
  }
}

// What is gone is an error of whoever wanted it, and nobody's end.
TEST_F(OdpTest, APeerThatWantsWhatIsGoneHasARemoteAccessError) {
  const Mapping mapping(kPage);
  Mr* const mr = make_mr(mapping.address, mapping.length, kOnDemand);
  ASSERT_EQ(to(IBV_WR_RDMA_WRITE, mapping.address, *mr), IBV_WC_SUCCESS);
  mapping.unmap_page(0);
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    EXPECT_EQ(to(opcode, mapping.address, *mr), IBV_WC_REM_ACCESS_ERR) << opcode;
    ASSERT_EQ(to_state(*a_, IBV_QPS_RESET) | to_state(*b_, IBV_QPS_RESET), 0);
    connect(*a_, *b_);
  }
}

TEST_F(OdpTest, OwnWorkThatUsesWhatIsGoneHasALocalProtectionError) {
  const Mapping mapping(kPage);
  Mr* const mr = make_mr(nullptr, SIZE_MAX, kOnDemand);
  ASSERT_EQ(from(IBV_WR_RDMA_WRITE, mapping.address, *mr), IBV_WC_SUCCESS);
  mapping.unmap_page(0);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    EXPECT_EQ(from(opcode, mapping.address, *mr), IBV_WC_LOC_PROT_ERR) << opcode;
    ASSERT_EQ(to_state(*a_, IBV_QPS_RESET) | to_state(*b_, IBV_QPS_RESET), 0);
    connect(*a_, *b_);
  }
}

TEST_F(OdpTest, AReceiveInWhatIsGoneFailsBothEnds) {
  const Mapping mapping(kPage);
  Mr* const mr = make_mr(mapping.address, mapping.length, kOnDemand);
  mapping.unmap_page(0);
  ReceiveRequest receive(mapping.address, 64, mr->region.key);
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(post_recv(*b_, &receive, &bad), 0);
  SendRequest send(IBV_WR_SEND, memory_.data(), 64, present_->region.key);
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(post_send(*a_, &send, &bad_send), 0);
  std::set<ibv_wc_status> statuses;
  for (const ibv_wc& wc : wait_for(2)) statuses.insert(wc.status);
  EXPECT_EQ(statuses, (std::set{IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR}));
}

// Only what a message has reached becomes memory.
TEST_F(OdpTest, ASparseRegionBecomesRealWhereItIsUsed) {
  const Mapping sparse(std::size_t{64} << 30);
  ASSERT_NE(sparse.address, MAP_FAILED);
  Mr* const mr = make_mr(sparse.address, sparse.length, kOnDemand);
  ASSERT_NE(mr, nullptr);
  const std::size_t pages = sparse.length / kPage;
  for (const std::size_t page : {std::size_t{0}, pages / 2, pages - 1}) {
    ASSERT_EQ(to(IBV_WR_RDMA_WRITE, sparse.bytes() + page * kPage, *mr), IBV_WC_SUCCESS);
    EXPECT_TRUE(sparse.is_resident(page));
  }
  EXPECT_FALSE(sparse.is_resident(1));
  EXPECT_FALSE(sparse.is_resident(pages / 2 + 1));
}

TEST_F(OdpTest, RightsOfThePagesCountBesideThoseOfTheRegion) {
  const Mapping readable(kPage, PROT_READ);
  Mr* const mr = make_mr(readable.address, readable.length, kOnDemand);
  EXPECT_EQ(to(IBV_WR_RDMA_READ, readable.address, *mr), IBV_WC_SUCCESS);
  EXPECT_EQ(to(IBV_WR_RDMA_WRITE, readable.address, *mr), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(OdpTest, AdviceBringsMemoryIn) {
  const Mapping mapping(8 * kPage);
  Mr* const explicitly = make_mr(mapping.address, mapping.length, kOnDemand);
  Mr* const implicitly = make_mr(nullptr, SIZE_MAX, kOnDemand);
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, mapping.at(), 8 * kPage,
                   explicitly->region.key),
            0);
  EXPECT_FALSE(mapping.is_resident(0));
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, mapping.at() + kPage, kPage,
                   explicitly->region.key),
            0);
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, mapping.at() + 3 * kPage, kPage,
                   implicitly->region.key, 0),
            0);
  EXPECT_TRUE(mapping.is_resident(1));
  EXPECT_FALSE(mapping.is_resident(2));
  EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, mapping.at(), 0, explicitly->region.key), 0);
}

TEST_F(OdpTest, WrongAdviceIsAnErrorOfTheManualPage) {
  const Mapping mapping(2 * kPage);
  mapping.unmap_page(1);
  const std::uint32_t key =
      make_mr(mapping.address, mapping.length, IBV_ACCESS_ON_DEMAND)->region.key;
  constexpr auto kRead = IBV_ADVISE_MR_ADVICE_PREFETCH;
  constexpr auto kWrite = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  EXPECT_EQ(advise(static_cast<ibv_advise_mr_advice>(3), mapping.at(), 1, key), ENOTSUP);
  EXPECT_EQ(advise(kRead, mapping.at(), 1, key, 2), EINVAL);
  EXPECT_EQ(advise_mr(*pd_, kRead, 0, {}), EINVAL);
  EXPECT_EQ(advise(kRead, mapping.at(), 1, key ^ 1), ENOENT);
  EXPECT_EQ(advise(kRead, mapping.at(), 1, present_->region.key), EINVAL);
  EXPECT_EQ(advise(kWrite, mapping.at(), 1, key), EPERM);
  EXPECT_EQ(advise(kRead, mapping.at(), 2 * kPage + 1, key), EFAULT);
  EXPECT_EQ(advise(kRead, mapping.at() - 1, 1, key), EFAULT);
  EXPECT_EQ(advise(kRead, mapping.at() + kPage, 1, key), EFAULT);
  Pd* const other = alloc_pd(*context_);
  const ibv_sge range{mapping.at(), 1, key};
  EXPECT_EQ(advise_mr(*other, kRead, 0, {&range, 1}), EPERM);
  EXPECT_EQ(dealloc_pd(other), 0);
}

using NullMrTest = OdpTest;

TEST_F(NullMrTest, ReadsAsZeroesAndSwallowsWhatIsWritten) {
  Mr* const null = alloc_null_mr(*pd_);
  ASSERT_NE(null, nullptr);
  mrs_.push_back(null);
  memory_.fill(std::byte{0x5a});
  EXPECT_EQ(from(IBV_WR_RDMA_READ, nullptr, *null), IBV_WC_SUCCESS);
  EXPECT_EQ(memory_[0], std::byte{0x5a});
  EXPECT_EQ(from(IBV_WR_RDMA_WRITE, reinterpret_cast<void*>(0x1234), *null), IBV_WC_SUCCESS);
  EXPECT_EQ(memory_[63], std::byte{0});
  EXPECT_EQ(memory_[64], std::byte{0x5a});
}

TEST_F(NullMrTest, IsNotForPeersNorForRegistration) {
  Mr* const null = alloc_null_mr(*pd_);
  ASSERT_NE(null, nullptr);
  mrs_.push_back(null);
  EXPECT_EQ(rereg_mr(*null, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), EINVAL);
  EXPECT_EQ(to(IBV_WR_RDMA_READ, memory_.data(), *null), IBV_WC_REM_ACCESS_ERR);
}

}  // namespace
}  // namespace uroce::verbs
