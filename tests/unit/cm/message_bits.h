// SPDX-License-Identifier: BSD-2-Clause
// Fields of a message by the standard's drawings: a byte, a bit of it counted from the left, a
// width.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "cm/mad.h"

namespace uroce::cm::test {

template <typename Message>
std::span<const std::byte> bytes_of(const Message& message) {
  static_assert(sizeof(Message) == kMessageBytes);
  return std::as_bytes(std::span(&message, 1));
}

inline std::uint64_t bits(std::span<const std::byte> bytes, std::size_t byte, std::size_t bit,
                          std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t at = byte * 8 + bit; at < byte * 8 + bit + width; ++at) {
    value = value << 1 | (std::to_integer<std::uint64_t>(bytes[at / 8]) >> (7 - at % 8) & 1);
  }
  return value;
}

struct Field {
  const char* name;
  std::size_t byte, bit, width;
  std::uint64_t value;
};

// All of `fields`, and zero in every bit that none of them covers, up to byte `end`.
inline void expect_fields(std::span<const std::byte> message, std::size_t end,
                          const std::vector<Field>& fields) {
  std::vector<bool> is_covered(end * 8);
  for (const Field& field : fields) {
    EXPECT_EQ(bits(message, field.byte, field.bit, field.width), field.value) << field.name;
    for (std::size_t i = 0; i < field.width; ++i) {
      is_covered.at(field.byte * 8 + field.bit + i) = true;
    }
  }
  for (std::size_t bit = 0; bit < is_covered.size(); ++bit) {
    if (is_covered[bit]) continue;
    EXPECT_EQ(bits(message, bit / 8, bit % 8, 1), 0U) << "reserved bit of byte " << bit / 8;
  }
}

}  // namespace uroce::cm::test
