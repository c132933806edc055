// SPDX-License-Identifier: BSD-2-Clause
#include "memory/access.h"

#include <gtest/gtest.h>

namespace uroce::memory {
namespace {

TEST(Access, NothingIsNeededForLocalReads) {
  EXPECT_TRUE(has(Access::kNone, Access::kNone));
  EXPECT_TRUE(has(Access::kRemoteWrite, Access::kNone));
}

TEST(Access, NeedsEveryFlagAskedFor) {
  const Access granted = Access::kLocalWrite | Access::kRemoteAtomic;
  EXPECT_TRUE(has(granted, Access::kRemoteAtomic));
  EXPECT_TRUE(has(granted, granted));
  EXPECT_FALSE(has(granted, Access::kRemoteWrite));
  EXPECT_FALSE(has(granted, Access::kLocalWrite | Access::kRemoteRead));
}

}  // namespace
}  // namespace uroce::memory
