// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/crc/fast_crc32.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace uroce::datapath {
namespace {

const std::byte* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

// The check value of CRC-32/ISO-HDLC.
TEST(FastCrc32, IsEthernets) {
  constexpr std::string_view kCheck = "123456789";
  EXPECT_EQ(fast_crc32(0, bytes_of(kCheck), kCheck.size()), 0xcbf43926U);
  EXPECT_EQ(choose_crc32()(0, bytes_of(kCheck), kCheck.size()), 0xcbf43926U);
}

TEST(FastCrc32, IsTheSameAsByTablesWhateverTheLengthAndInAsManyPiecesAsOneLikes) {
  std::vector<std::byte> data(5'000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i * i >> 3);
  for (const std::size_t bytes : {0U, 1U, 7U, 16U, 63U, 64U, 255U, 1'024U, 4'096U, 5'000U}) {
    const std::uint32_t whole = wire::crc32(0, data.data(), bytes);
    EXPECT_EQ(fast_crc32(0, data.data(), bytes), whole) << bytes;
    const std::size_t first = bytes / 3;
    const std::uint32_t begun = fast_crc32(0, data.data(), first);
    EXPECT_EQ(fast_crc32(begun, data.data() + first, bytes - first), whole) << bytes;
  }
}

TEST(FastCrc32, AChoiceIsMadeOnce) {
  const std::byte one{1};
  static_cast<void>(fast_crc32(0, &one, 1));
  const wire::Crc32Function chosen = chosen_crc32.load();
  static_cast<void>(fast_crc32(0, &one, 1));
  EXPECT_EQ(chosen_crc32.load(), chosen);
}

}  // namespace
}  // namespace uroce::datapath
