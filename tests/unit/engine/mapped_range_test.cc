// SPDX-License-Identifier: BSD-2-Clause
#include "engine/mapped_range.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/mapping.h"

namespace uroce::engine {
namespace {

using test::kPage;
using test::Mapping;

TEST(CheckMapped, TakesWhatIsMappedWithTheRights) {
  const Mapping writable(4 * kPage);
  EXPECT_EQ(check_mapped(writable.at() + 1, 4 * kPage - 1, MemoryUse::kWrite), 0);
  const Mapping readable(kPage, PROT_READ);
  EXPECT_EQ(check_mapped(readable.at(), kPage, MemoryUse::kRead), 0);
  EXPECT_EQ(check_mapped(readable.at(), kPage, MemoryUse::kWrite), EFAULT);
}

TEST(CheckMapped, RefusesHolesAndWhatNobodyMayRead) {
  const Mapping holed(4 * kPage);
  holed.unmap_page(1);
  EXPECT_EQ(check_mapped(holed.at(), 4 * kPage, MemoryUse::kRead), EFAULT);
  EXPECT_EQ(check_mapped(holed.at(), kPage, MemoryUse::kRead), 0);
  const Mapping none(kPage, PROT_NONE);
  EXPECT_EQ(check_mapped(none.at(), kPage, MemoryUse::kRead), EFAULT);
  EXPECT_EQ(check_mapped(0, 1, MemoryUse::kRead), EFAULT);
  EXPECT_EQ(check_mapped(UINT64_MAX, 1, MemoryUse::kRead), EFAULT);
}

TEST(BringIn, MakesPresentWhatIsUsedAndNoMore) {
  const Mapping mapping(4 * kPage);
  EXPECT_EQ(bring_in(mapping.at() + kPage, 1, MemoryUse::kWrite), 0);
  EXPECT_FALSE(mapping.is_resident(0));
  EXPECT_TRUE(mapping.is_resident(1));
  EXPECT_FALSE(mapping.is_resident(2));
  EXPECT_EQ(bring_in(mapping.at() + 2 * kPage - 1, 2, MemoryUse::kWrite), 0);
  EXPECT_TRUE(mapping.is_resident(2));
}

TEST(BringIn, RefusesWhatAnAccessWouldFaultOn) {
  const Mapping holed(4 * kPage);
  holed.unmap_page(2);
  EXPECT_EQ(bring_in(holed.at() + 2 * kPage - 8, 8, MemoryUse::kWrite), 0);
  EXPECT_EQ(bring_in(holed.at() + 2 * kPage - 8, 9, MemoryUse::kWrite), EFAULT);
  const Mapping readable(kPage, PROT_READ);
  EXPECT_EQ(bring_in(readable.at(), kPage, MemoryUse::kRead), 0);
  EXPECT_EQ(bring_in(readable.at(), kPage, MemoryUse::kWrite), EFAULT);
  const Mapping none(kPage, PROT_NONE);
  EXPECT_EQ(bring_in(none.at(), 1, MemoryUse::kRead), EFAULT);
  EXPECT_EQ(bring_in(0, 1, MemoryUse::kRead), EFAULT);
  EXPECT_EQ(bring_in(UINT64_MAX, 1, MemoryUse::kRead), EFAULT);
  EXPECT_EQ(bring_in(UINT64_MAX, 2, MemoryUse::kRead), EFAULT);
}

// Two pages of a file of one; an access to the second would end in SIGBUS.
struct ShortFile {
  ShortFile() {
    EXPECT_EQ(ftruncate(file, kPage), 0);
    EXPECT_NE(mapped, MAP_FAILED);
  }
  ~ShortFile() {
    munmap(mapped, 2 * kPage);
    close(file);
  }
  ShortFile(const ShortFile&) = delete;
  ShortFile& operator=(const ShortFile&) = delete;

  int file = memfd_create("short", MFD_CLOEXEC);
  void* mapped = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  std::uint64_t at = reinterpret_cast<std::uintptr_t>(mapped);
};

TEST(BringIn, RefusesWhatLiesBehindTheEndOfAFile) {
  const ShortFile file;
  EXPECT_EQ(bring_in(file.at, kPage, MemoryUse::kWrite), 0);
  EXPECT_EQ(bring_in(file.at + kPage, 1, MemoryUse::kRead), EFAULT);
}

TEST(CheckMapped, RefusesWhatLiesBehindTheEndOfAFile) {
  const ShortFile file;
  for (const MemoryUse use : {MemoryUse::kRead, MemoryUse::kWrite}) {
    EXPECT_EQ(check_mapped(file.at, kPage, use), 0);
    EXPECT_EQ(check_mapped(file.at, 2 * kPage, use), EFAULT);
    EXPECT_EQ(check_mapped(file.at + kPage, 1, use), EFAULT);
  }
}

}  // namespace
}  // namespace uroce::engine
