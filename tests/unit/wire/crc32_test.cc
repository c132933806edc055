// SPDX-License-Identifier: BSD-2-Clause
#include "wire/crc32.h"

#include <gtest/gtest.h>

#include "unit/wire/packets.h"
#include "wire/crc_algebra.h"

namespace uroce::wire {
namespace {

// Bit by bit, as the definition says.
std::uint32_t slow_crc32(ConstBytes data) {
  std::uint32_t state = ~std::uint32_t{0};
  for (const std::byte byte : data) {
    state ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xedb8'8320 : 0);
  }
  return ~state;
}

TEST(Crc32, CheckValueOfTheCatalogue) {
  const char digits[] = "123456789";
  EXPECT_EQ(crc32(0, std::as_bytes(std::span(digits)).data(), 9), 0xcbf4'3926u);
  EXPECT_EQ(crc32(0, nullptr, 0), 0u);
}

TEST(Crc32, EveryShortLengthAndAlignment) {
  const ByteVector data = counting_bytes(80, 77);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    for (std::size_t bytes = 0; bytes <= 64; ++bytes) {
      const ConstBytes part = ConstBytes(data).subspan(offset, bytes);
      ASSERT_EQ(crc32(0, part.data(), part.size()), slow_crc32(part));
    }
  }
}

TEST(Crc32, GoesOnFromAnyCut) {
  const ByteVector data = counting_bytes(100);
  const std::uint32_t whole = crc32(0, data.data(), data.size());
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    const std::uint32_t head = crc32(0, data.data(), cut);
    EXPECT_EQ(crc32(head, data.data() + cut, data.size() - cut), whole);
  }
}

TEST(CrcAlgebra, MultiplyingByPowersOfXAppendsZeros) {
  std::uint32_t power = kCrcOne;
  std::uint32_t expected = 0x1234'5678;
  for (int n = 0; n < 200; ++n) {
    ASSERT_EQ(multiply(0x1234'5678, power), expected);
    ASSERT_EQ(multiply(power, 0x1234'5678), expected);
    power = append_zero_byte(power);
    expected = append_zero_byte(expected);
  }
}

}  // namespace
}  // namespace uroce::wire
