// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 as arithmetic on polynomials over GF(2) modulo its generator, for those who need more than
// the CRC of bytes: what a field at a known distance from the end contributes to it.
//
// A polynomial is a word with the coefficient of x^0 in the highest bit (the "reflected" form in
// which the CRC is kept). Appending a zero byte multiplies the register by x^8. For messages of one
// length, crc(A) ^ crc(B) depends on A ^ B alone: the initial and final inversions cancel out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace uroce::wire {

inline constexpr std::uint32_t kCrcGenerator = 0xedb8'8320;
inline constexpr std::uint32_t kCrcOne = 0x8000'0000;  // the polynomial 1

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1) != 0 ? kCrcGenerator : 0);
}

// The generator has a constant term, so x has an inverse.
constexpr std::uint32_t divided_by_x(std::uint32_t a) {
  const bool reduced = (a & kCrcOne) != 0;
  return ((reduced ? a ^ kCrcGenerator : a) << 1) | (reduced ? 1 : 0);
}

constexpr std::uint32_t append_zero_byte(std::uint32_t a) {
  for (int bit = 0; bit < 8; ++bit) a = times_x(a);
  return a;
}

// kTimesX4[n] is what the four lowest bits n (the highest powers) become when multiplied by x^4.
inline constexpr auto kTimesX4 = [] {
  std::array<std::uint32_t, 16> products{};
  for (std::uint32_t n = 0; n < products.size(); ++n) {
    products[n] = times_x(times_x(times_x(times_x(n))));
  }
  return products;
}();

// The product, four coefficients of `b` a step.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::array<std::uint32_t, 16> multiples{};  // of a, by the four coefficients in a nibble of b
  multiples[8] = a;
  multiples[4] = times_x(a);
  multiples[2] = times_x(multiples[4]);
  multiples[1] = times_x(multiples[2]);
  for (std::size_t n = 3; n < 16; ++n) {
    multiples[n] = multiples[n & (n - 1)] ^ multiples[n & (~n + 1)];
  }
  std::uint32_t product = 0;
  for (unsigned shift = 0; shift < 32; shift += 4) {  // highest powers first
    product = product >> 4 ^ kTimesX4[product & 15] ^ multiples[b >> shift & 15];
  }
  return product;
}

static_assert(divided_by_x(times_x(0x1234'5678)) == 0x1234'5678);
static_assert(times_x(divided_by_x(0x9bcd'ef01)) == 0x9bcd'ef01);
static_assert(multiply(kCrcOne, 0xdead'beef) == 0xdead'beef);
static_assert(multiply(0xdead'beef, kCrcOne >> 1) == times_x(0xdead'beef));

}  // namespace uroce::wire
