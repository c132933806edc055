// SPDX-License-Identifier: BSD-2-Clause
#include "support/mapping.h"
#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

using test::kPage;
using test::Mapping;

using MrTest = VerbsTest;

// A sparse region of 64 GiB registers, without becoming real.
TEST_F(MrTest, RegistersMoreThanThereIsMemory) {
  const Mapping sparse(std::size_t{64} << 30);
  ASSERT_NE(sparse.address, MAP_FAILED);
  EXPECT_NE(make_mr(sparse.address, sparse.length), nullptr);
}

TEST_F(MrTest, RefusesWhatTheKernelWouldRefuse) {
  std::array<std::byte, 64> memory{};
  struct Case {
    const char* name;
    void* address;
    std::size_t length;
    int access;
    int error;
  };
  const Mapping readable(kPage, PROT_READ);
  void* const high = reinterpret_cast<void*>(UINT64_MAX - 1);
  for (const Case& c : {
           Case{"no length", memory.data(), 0, 0, EINVAL},
           Case{"wraps", high, 64, 0, EINVAL},
           Case{"remote write without local", memory.data(), 64, IBV_ACCESS_REMOTE_WRITE, EINVAL},
           Case{"atomic without local", memory.data(), 64, IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
           Case{"unknown flag", memory.data(), 64, 1 << 30, EINVAL},
           Case{"persistence", memory.data(), 64, 1 << 9, EOPNOTSUPP},
           Case{"implicit of huge pages", nullptr, SIZE_MAX,
                IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB, EINVAL},
           Case{"on demand, wraps", high, 64, IBV_ACCESS_ON_DEMAND, EINVAL},
           Case{"not mapped", nullptr, 64, 0, EFAULT},
           Case{"not writable", readable.address, 64, IBV_ACCESS_LOCAL_WRITE, EFAULT},
       }) {
    errno = 0;
    EXPECT_EQ(make_mr(c.address, c.length, c.access), nullptr) << c.name;
    EXPECT_EQ(errno, c.error) << c.name;
  }
}

TEST_F(MrTest, TheImplicitRegionHasNoOtherAddress) {
  errno = 0;
  EXPECT_EQ(reg_mr(*pd_, nullptr, SIZE_MAX, kPage, IBV_ACCESS_ON_DEMAND), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(MrTest, ANullRegionIsARegionLikeOthers) {
  engine::Quota& quota = engine_.quotas().mr;
  ASSERT_TRUE(quota.take(engine::kMrMax));
  errno = 0;
  EXPECT_EQ(alloc_null_mr(*pd_), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  quota.give_back(engine::kMrMax);
  Mr* const null = alloc_null_mr(*pd_);
  ASSERT_NE(null, nullptr);
  mrs_.push_back(null);
  EXPECT_EQ(dealloc_pd(pd_), EBUSY);
}

TEST_F(MrTest, ReregistrationKeepsTheKeyAndFailsWhole) {
  std::array<std::byte, 64> memory{};
  Mr* mr = make_mr(memory.data(), 64);
  ASSERT_NE(mr, nullptr);
  const std::uint32_t key = mr->region.key;
  EXPECT_EQ(rereg_mr(*mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
            EINVAL);
  EXPECT_EQ(rereg_mr(*mr, 0, pd_, memory.data(), 8, 0), EINVAL);  // nothing to change
  const OtherContext other(engine_);
  EXPECT_EQ(rereg_mr(*mr, IBV_REREG_MR_CHANGE_PD, other.pd, nullptr, 0, 0), EINVAL);
  const Mapping gone(2 * kPage);
  gone.unmap_page(1);
  EXPECT_EQ(rereg_mr(*mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, gone.address, 2 * kPage, 0),
            EFAULT);
  EXPECT_EQ(mr->region.key, key);
  EXPECT_EQ(mr->region.base, memory.data());
  EXPECT_EQ(mr->region.length, 64U);
  EXPECT_EQ(rereg_mr(*mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.data() + 8, 8, 0), 0);
  EXPECT_EQ(mr->region.key, key);
  EXPECT_EQ(mr->region.length, 8U);
}

TEST_F(MrTest, APdInUseStays) {
  std::array<std::byte, 64> memory{};
  ASSERT_NE(make_mr(memory.data(), 64), nullptr);
  EXPECT_EQ(dealloc_pd(pd_), EBUSY);
}

TEST_F(MrTest, TheTableGrows) {
  std::array<std::byte, 64> memory{};
  std::set<std::uint32_t> keys;
  for (int i = 0; i < 2'000; ++i) {
    Mr* mr = make_mr(memory.data(), 64);
    ASSERT_NE(mr, nullptr);
    keys.insert(mr->region.key);
  }
  EXPECT_EQ(keys.size(), 2'000U);
}

}  // namespace
}  // namespace uroce::verbs
