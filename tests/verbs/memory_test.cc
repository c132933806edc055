// SPDX-License-Identifier: BSD-2-Clause
// Memory regions beyond the ordinary, by the calls of stock libibverbs: null, on demand and advice,
// dma-bufs, and the flags.
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>

#include "node.h"
#include "support/mapping.h"

namespace uroce::tests {
namespace {

using test::kPage;
using test::Mapping;

constexpr unsigned kOnDemand = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND;

class MemoryVerbs : public testing::Test {
 protected:
  MemoryVerbs() {
    EXPECT_EQ(node_.connect(peer_.address()), 0);
    EXPECT_EQ(peer_.connect(node_.address()), 0);
  }
  // From the node's memory to there, or back.
  ibv_wc_status run(ibv_wr_opcode opcode, void* remote, std::uint32_t rkey, ibv_sge local) {
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &local;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {reinterpret_cast<std::uintptr_t>(remote), rkey};
    EXPECT_EQ(ibv_post_send(node_.qp, &request, &bad), 0);
    return node_.wait().status;
  }
  ibv_sge own(std::uint32_t bytes = 64) {
    return {reinterpret_cast<std::uintptr_t>(node_.memory.data()), bytes, node_.mr->lkey};
  }

  Node node_;
  Node peer_{4096, node_.context};
};

TEST_F(MemoryVerbs, ANullRegionReadsAsZeroes) {
  ibv_mr* const null = ibv_alloc_null_mr(node_.pd);
  ASSERT_NE(null, nullptr);
  EXPECT_EQ(null->length, SIZE_MAX);
  peer_.memory.assign(4096, std::byte{0x5a});
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, peer_.memory.data(), peer_.mr->rkey, {0x1234, 4000, null->lkey}),
            IBV_WC_SUCCESS);
  EXPECT_EQ(peer_.memory[3999], std::byte{0});
  EXPECT_EQ(peer_.memory[4000], std::byte{0x5a});
  EXPECT_EQ(run(IBV_WR_RDMA_READ, peer_.memory.data(), peer_.mr->rkey, {0, 4096, null->lkey}),
            IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ibv_dereg_mr(null), 0);
}

// man ibv_rereg_mr: a code that says what became of the region, and the reason in errno.
TEST_F(MemoryVerbs, ReregistrationThatFailsSaysWhyInErrno) {
  const Mapping gone(kPage);
  gone.unmap_page(0);
  errno = 0;
  EXPECT_EQ(ibv_rereg_mr(node_.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                         IBV_ACCESS_REMOTE_WRITE),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(
      ibv_rereg_mr(node_.mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, gone.address, kPage, 0),
      IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, peer_.memory.data(), peer_.mr->rkey, own()), IBV_WC_SUCCESS);
}

TEST_F(MemoryVerbs, OnDemandIsOfferedByEachTransport) {
  ibv_device_attr_ex attributes{};
  ASSERT_EQ(ibv_query_device_ex(node_.context, nullptr, &attributes), 0);
  EXPECT_EQ(attributes.odp_caps.general_caps,
            std::uint64_t{IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT});
  const auto& caps = attributes.odp_caps.per_transport_caps;
  EXPECT_NE(caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC, 0U);
  EXPECT_NE(caps.uc_odp_caps & IBV_ODP_SUPPORT_WRITE, 0U);
  EXPECT_EQ(caps.uc_odp_caps & IBV_ODP_SUPPORT_READ, 0U);
  EXPECT_NE(caps.ud_odp_caps & IBV_ODP_SUPPORT_RECV, 0U);
  EXPECT_NE(attributes.xrc_odp_caps & IBV_ODP_SUPPORT_SRQ_RECV, 0U);
  EXPECT_EQ(attributes.xrc_odp_caps & IBV_ODP_SUPPORT_RECV, 0U);
}

TEST_F(MemoryVerbs, WhatIsGoneIsAnErrorAndNotTheEnd) {
  const Mapping mapping(4 * kPage);
  ibv_mr* const implicit = ibv_reg_mr(peer_.pd, nullptr, SIZE_MAX, kOnDemand);
  ASSERT_NE(implicit, nullptr);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, mapping.address, implicit->rkey, own()), IBV_WC_SUCCESS);
  EXPECT_EQ(run(IBV_WR_RDMA_READ, mapping.bytes() + kPage, implicit->rkey, own()), IBV_WC_SUCCESS);
  mapping.unmap_page(0);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, mapping.address, implicit->rkey, own()), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(implicit), 0);
}

TEST_F(MemoryVerbs, WhatIsNotThereCannotBeSent) {
  ibv_mr* const implicit = ibv_reg_mr(node_.pd, nullptr, SIZE_MAX, kOnDemand);
  ASSERT_NE(implicit, nullptr);
  const Mapping mapping(kPage);
  const ibv_sge there{mapping.at(), 64, implicit->lkey};
  void* const target = peer_.memory.data();
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, target, peer_.mr->rkey, there), IBV_WC_SUCCESS);
  mapping.unmap_page(0);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, target, peer_.mr->rkey, there), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(ibv_dereg_mr(implicit), 0);
}

TEST_F(MemoryVerbs, ASparseRegionOf64GiBIsUsedAtBothEnds) {
  const Mapping sparse(std::size_t{64} << 30);
  ASSERT_NE(sparse.address, MAP_FAILED);
  for (const unsigned access : {kOnDemand, kOnDemand & ~unsigned{IBV_ACCESS_ON_DEMAND}}) {
    ibv_mr* const mr = ibv_reg_mr(peer_.pd, sparse.address, sparse.length, access);
    ASSERT_NE(mr, nullptr);
    std::byte* const last = sparse.bytes() + sparse.length - 64;
    EXPECT_EQ(run(IBV_WR_RDMA_WRITE, sparse.address, mr->rkey, own()), IBV_WC_SUCCESS);
    EXPECT_EQ(run(IBV_WR_RDMA_WRITE, last, mr->rkey, own()), IBV_WC_SUCCESS);
    EXPECT_EQ(run(IBV_WR_RDMA_READ, sparse.bytes() + sparse.length / 2, mr->rkey, own()),
              IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  }
}

TEST_F(MemoryVerbs, AdviceIsTakenForWhatIsOnDemand) {
  const Mapping mapping(4 * kPage);
  ibv_mr* const mr = ibv_reg_mr(node_.pd, mapping.address, mapping.length, kOnDemand);
  ASSERT_NE(mr, nullptr);
  ibv_sge range{mapping.at() + kPage, kPage, mr->lkey};
  EXPECT_EQ(ibv_advise_mr(node_.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
                          &range, 1),
            0);
  EXPECT_FALSE(mapping.is_resident(0));
  EXPECT_TRUE(mapping.is_resident(1));
  range.lkey = node_.mr->lkey;
  range.addr = reinterpret_cast<std::uintptr_t>(node_.memory.data());
  range.length = 1;
  EXPECT_EQ(ibv_advise_mr(node_.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &range, 1), EINVAL);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(MemoryVerbs, FlagsOfTheManualPage) {
  constexpr unsigned kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_ZERO_BASED | IBV_ACCESS_RELAXED_ORDERING;
  ibv_mr* const mr = ibv_reg_mr(peer_.pd, peer_.memory.data(), peer_.memory.size(), kAll);
  ASSERT_NE(mr, nullptr);
  node_.memory.assign(64, std::byte{0x5a});
  ibv_mr* const source = ibv_reg_mr(node_.pd, node_.memory.data(), node_.memory.size(), 0);
  const ibv_sge local{reinterpret_cast<std::uintptr_t>(node_.memory.data()), 64, source->lkey};
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, reinterpret_cast<void*>(128), mr->rkey, local), IBV_WC_SUCCESS);
  EXPECT_EQ(peer_.memory[128], std::byte{0x5a});
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dereg_mr(source), 0);
  ibv_mr* const huge = ibv_reg_mr(peer_.pd, peer_.memory.data(), 64, int{IBV_ACCESS_HUGETLB});
  ASSERT_NE(huge, nullptr);  // a hint, where it is not on demand
  EXPECT_EQ(ibv_dereg_mr(huge), 0);
}

TEST_F(MemoryVerbs, WhatIsNoDmabufIsRefused) {
  const int file = memfd_create("not a dma-buf", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, kPage), 0);
  constexpr int kWrite = IBV_ACCESS_LOCAL_WRITE;
  const auto reg = [&](std::uint64_t offset, std::uint64_t iova, int descriptor, int access) {
    errno = 0;
    EXPECT_EQ(ibv_reg_dmabuf_mr(node_.pd, offset, 64, iova, descriptor, access), nullptr);
    return errno;
  };
  EXPECT_EQ(reg(0, 0, file, kWrite), EINVAL);
  EXPECT_EQ(reg(0, 0, -1, kWrite), EBADF);
  EXPECT_EQ(reg(8, 0x1000, file, kWrite), EINVAL);
  EXPECT_EQ(reg(kPage - 1, UINT64_MAX, -1, kWrite), EINVAL);  // wraps
  EXPECT_EQ(reg(0, 0, -1, IBV_ACCESS_REMOTE_WRITE), EINVAL);
  EXPECT_EQ(reg(0, 0, -1, IBV_ACCESS_ON_DEMAND), EINVAL);
  EXPECT_EQ(reg(0, 0, -1, IBV_ACCESS_ZERO_BASED), EINVAL);
  close(file);
}

// One page of a sealed file as a dma-buf; -1 where the kernel has no such thing.
int make_udmabuf() {
  const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
  if (device < 0) return -1;
  const int file = memfd_create("udmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(ftruncate(file, 2 * kPage), 0);
  EXPECT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  udmabuf_create create{};
  create.memfd = static_cast<std::uint32_t>(file);
  create.flags = UDMABUF_FLAGS_CLOEXEC;
  create.size = 2 * kPage;
  const int buffer = ioctl(device, UDMABUF_CREATE, &create);
  close(file);
  close(device);
  return buffer;
}

TEST_F(MemoryVerbs, ADmabufIsMemoryToo) {
  const int buffer = make_udmabuf();
  if (buffer < 0) GTEST_SKIP() << "the kernel has no udmabuf";
  constexpr std::uint64_t kOffset = kPage + 64, kIova = 0x10'0040;
  ibv_mr* const mr = ibv_reg_dmabuf_mr(peer_.pd, kOffset, 128, kIova, buffer,
                                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_NE(mr, nullptr);
  node_.memory.assign(4096, std::byte{0x5a});
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, reinterpret_cast<void*>(kIova), mr->rkey, own()),
            IBV_WC_SUCCESS);
  const void* const seen = mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, buffer, 0);
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_EQ(static_cast<const std::byte*>(seen)[kOffset + 63], std::byte{0x5a});
  EXPECT_EQ(static_cast<const std::byte*>(seen)[kOffset + 64], std::byte{0});
  munmap(const_cast<void*>(seen), 2 * kPage);
  errno = 0;
  EXPECT_EQ(ibv_reg_dmabuf_mr(peer_.pd, kPage, kPage + 1, kPage, buffer, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(ibv_reg_dmabuf_mr(peer_.pd, kPage, 0, kPage, buffer, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  close(buffer);
}

}  // namespace
}  // namespace uroce::tests
