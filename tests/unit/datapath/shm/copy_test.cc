// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace uroce::datapath::shm {
namespace {

// Every alignment of both ends, around the size from which the way matters, and often enough that
// each way is taken.
TEST(Copier, CopiesExactlyWhatItIsTold) {
  constexpr std::size_t kMargin = 128, kMost = 40'000;
  std::vector<std::byte> from(kMost + kMargin), to(kMost + 2 * kMargin);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 13 + i / 251);
  Copier copier;
  for (std::size_t round = 0; round < 1200; ++round) {
    const std::size_t bytes = round % 3 == 0 ? 16384 + round % 65 : 16300 + round * 17;
    const std::size_t from_offset = round % 67, to_offset = kMargin + round * 5 % 64;
    std::fill(to.begin(), to.end(), std::byte{0xee});
    copier.copy(to.data() + to_offset, from.data() + from_offset, bytes);
    ASSERT_EQ(std::memcmp(to.data() + to_offset, from.data() + from_offset, bytes), 0) << bytes;
    ASSERT_EQ(to[to_offset - 1], std::byte{0xee});
    ASSERT_EQ(to[to_offset + bytes], std::byte{0xee});
  }
}

TEST(Copier, CopiesNothing) {
  Copier copier;
  copier.copy(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace uroce::datapath::shm
