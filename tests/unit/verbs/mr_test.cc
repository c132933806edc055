// SPDX-License-Identifier: BSD-2-Clause
#include <sys/mman.h>

#include "unit/verbs/fixture.h"
#include "verbs/mapped_range.h"

namespace uroce::verbs {
namespace {

struct Mapping {
  Mapping(std::size_t bytes, int rights)
      : length(bytes),
        address(mmap(nullptr, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Mapping() { munmap(address, length); }
  [[nodiscard]] std::uint64_t at() const { return reinterpret_cast<std::uintptr_t>(address); }
  std::size_t length;
  void* address;
};

constexpr std::size_t kPage = 4'096;

TEST(CheckMapped, TakesWhatIsMappedWithTheRights) {
  const Mapping writable(4 * kPage, PROT_READ | PROT_WRITE);
  EXPECT_EQ(check_mapped(writable.at() + 1, 4 * kPage - 1, MemoryUse::kWrite), 0);
  const Mapping readable(kPage, PROT_READ);
  EXPECT_EQ(check_mapped(readable.at(), kPage, MemoryUse::kRead), 0);
  EXPECT_EQ(check_mapped(readable.at(), kPage, MemoryUse::kWrite), EFAULT);
}

TEST(CheckMapped, RefusesHolesAndWhatNobodyMayRead) {
  Mapping holed(4 * kPage, PROT_READ | PROT_WRITE);
  munmap(static_cast<std::byte*>(holed.address) + kPage, kPage);
  EXPECT_EQ(check_mapped(holed.at(), 4 * kPage, MemoryUse::kRead), EFAULT);
  EXPECT_EQ(check_mapped(holed.at(), kPage, MemoryUse::kRead), 0);
  const Mapping none(kPage, PROT_NONE);
  EXPECT_EQ(check_mapped(none.at(), kPage, MemoryUse::kRead), EFAULT);
  EXPECT_EQ(check_mapped(0, 1, MemoryUse::kRead), EFAULT);
  EXPECT_EQ(check_mapped(UINT64_MAX, 1, MemoryUse::kRead), EFAULT);
}

using MrTest = VerbsTest;

// A sparse region of 64 GiB registers, without becoming real.
TEST_F(MrTest, RegistersMoreThanThereIsMemory) {
  const Mapping sparse(std::size_t{64} << 30, PROT_READ | PROT_WRITE);
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
           Case{"on demand", memory.data(), 64, IBV_ACCESS_ON_DEMAND, EOPNOTSUPP},
           Case{"not mapped", nullptr, 64, 0, EFAULT},
           Case{"not writable", readable.address, 64, IBV_ACCESS_LOCAL_WRITE, EFAULT},
       }) {
    errno = 0;
    EXPECT_EQ(make_mr(c.address, c.length, c.access), nullptr) << c.name;
    EXPECT_EQ(errno, c.error) << c.name;
  }
}

TEST_F(MrTest, ReregistrationKeepsTheKeyAndFailsWhole) {
  std::array<std::byte, 64> memory{};
  Mr* mr = make_mr(memory.data(), 64);
  ASSERT_NE(mr, nullptr);
  const std::uint32_t key = mr->region.key;
  EXPECT_EQ(rereg_mr(*mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
            EINVAL);
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
