// SPDX-License-Identifier: BSD-2-Clause
#include "wire/path_mtu.h"

#include <gtest/gtest.h>

namespace uroce::wire {
namespace {

TEST(PathMtu, IsTheLargestThatAnInterfaceCarries) {
  EXPECT_EQ(path_mtu_of(65'536), 4096);
  EXPECT_EQ(path_mtu_of(9'000), 4096);
  EXPECT_EQ(path_mtu_of(1'500), 1024);
  EXPECT_EQ(path_mtu_of(1'280), 1024);
  EXPECT_EQ(path_mtu_of(576), 256);
}

// A WRITE with immediate of XRC over IPv6: 40 + 8 + 12 + 4 + 16 + 4 bytes before the payload, and
// the ICRC's 4 behind it.
TEST(PathMtu, LeavesRoomForTheLongestHeaders) {
  EXPECT_EQ(path_mtu_of(4'096 + 88), 4096);
  EXPECT_EQ(path_mtu_of(4'096 + 87), 2048);
  EXPECT_EQ(path_mtu_of(2'048 + 87), 1024);
}

}  // namespace
}  // namespace uroce::wire
