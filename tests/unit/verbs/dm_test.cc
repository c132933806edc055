// SPDX-License-Identifier: BSD-2-Clause
// Device memory: limits, copies, regions in it and messages between them.
#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

using DmTest = VerbsTest;

ibv_alloc_dm_attr dm_of(std::size_t length, std::uint32_t log_align = 0, std::uint32_t mask = 0) {
  return {.length = length, .log_align_req = log_align, .comp_mask = mask};
}

constexpr unsigned kZeroBased = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
                                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

TEST_F(DmTest, AsMuchAsIsPromisedAndNoMore) {
  Dm* const all = alloc_dm(*context_, dm_of(engine::kDmBytesMax));
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(alloc_dm(*context_, dm_of(1)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(free_dm(all), 0);
  for (const auto& [attributes, error] :
       {std::pair{dm_of(std::size_t{engine::kDmBytesMax} + 1), EINVAL},
        {dm_of(SIZE_MAX), EINVAL},
        {dm_of(0), EINVAL},
        {dm_of(4, 22), EINVAL},
        {dm_of(4, 0, 1), EINVAL}}) {
    errno = 0;
    EXPECT_EQ(alloc_dm(*context_, attributes), nullptr);
    EXPECT_EQ(errno, error);
  }
  Dm* const aligned = alloc_dm(*context_, dm_of(4, 21));
  ASSERT_NE(aligned, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned->memory->bytes) % (1U << 21), 0U);
  EXPECT_EQ(free_dm(aligned), 0);
}

TEST_F(DmTest, IsCopiedInWholeWordsWithinItsBounds) {
  Dm* const dm = alloc_dm(*context_, dm_of(100));
  ASSERT_NE(dm, nullptr);
  std::array<std::uint32_t, 26> data{1, 2, 3};
  EXPECT_EQ(copy_to_dm(*dm, 92, data.data(), 8), 0);
  std::array<std::uint32_t, 2> back{};
  EXPECT_EQ(copy_from_dm(back.data(), *dm, 92, 8), 0);
  EXPECT_EQ(back[1], 2U);
  EXPECT_EQ(copy_from_dm(back.data(), *dm, 0, 8), 0);
  EXPECT_EQ(back[0], 0U);
  struct Case {
    std::uint64_t offset;
    std::size_t length;
  };
  for (const Case c :
       {Case{1, 4}, Case{4, 3}, Case{104, 4}, Case{0, 104}, Case{96, 8}, Case{UINT64_MAX - 3, 8}}) {
    EXPECT_EQ(copy_to_dm(*dm, c.offset, data.data(), c.length), EINVAL) << c.offset;
    EXPECT_EQ(copy_from_dm(data.data(), *dm, c.offset, c.length), EINVAL) << c.offset;
  }
  EXPECT_EQ(free_dm(dm), 0);
}

TEST_F(DmTest, RegionsBeginAtZeroAndKeepIt) {
  Dm* const dm = alloc_dm(*context_, dm_of(64));
  ASSERT_NE(dm, nullptr);
  EXPECT_EQ(reg_dm_mr(*pd_, *dm, 0, 64, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(reg_dm_mr(*pd_, *dm, 4, 64, kZeroBased), nullptr);
  EXPECT_EQ(errno, EINVAL);
  Mr* const mr = reg_dm_mr(*pd_, *dm, 16, 48, kZeroBased);
  ASSERT_NE(mr, nullptr);
  mrs_.push_back(mr);
  EXPECT_EQ(free_dm(dm), EBUSY);
  EXPECT_EQ(rereg_mr(*mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), EINVAL);
  Qp* const a = make_qp();
  Qp* const b = make_qp();
  connect(*a, *b);
  const std::array<std::uint32_t, 2> data{7, 8};
  ASSERT_EQ(copy_to_dm(*dm, 16, data.data(), 8), 0);
  SendRequest request(IBV_WR_RDMA_WRITE, nullptr, 8, mr->region.key);  // from byte 0 of the region
  request.wr.rdma = {40, mr->region.key};                              // to its end
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*a, &request, &bad), 0);
  EXPECT_EQ(wait_for(1).front().status, IBV_WC_SUCCESS);
  std::array<std::uint32_t, 2> back{};
  ASSERT_EQ(copy_from_dm(back.data(), *dm, 56, 8), 0);
  EXPECT_EQ(back, data);
  mrs_.clear();
  EXPECT_EQ(dereg_mr(mr), 0);
  EXPECT_EQ(free_dm(dm), 0);
}

// As those of an imported one might.
TEST_F(DmTest, TheMemoryStaysAsLongAsARegionLiesInIt) {
  Dm* const dm = alloc_dm(*context_, dm_of(64));
  ASSERT_NE(dm, nullptr);
  Dm* const imported = import_dm(*context_, dm->handle);
  ASSERT_NE(imported, nullptr);
  Mr* const mr = reg_dm_mr(*pd_, *imported, 0, 64, kZeroBased);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(free_dm(dm), EBUSY);
  unimport_dm(imported);
  EXPECT_EQ(free_dm(dm), EBUSY);
  EXPECT_EQ(dereg_mr(mr), 0);
  EXPECT_EQ(free_dm(dm), 0);
}

}  // namespace
}  // namespace uroce::verbs
