// SPDX-License-Identifier: BSD-2-Clause
// Big-endian fields as they lie on the wire: alignment 1, no padding, no implicit conversion.
// bit_cast and bswap, not a byte loop: g++ 12 leaves the loop a loop.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace uroce {

template <std::unsigned_integral V>
constexpr V swap_bytes(V v) {
  if constexpr (sizeof(V) == 1) return v;
  if constexpr (sizeof(V) == 2) return __builtin_bswap16(v);
  if constexpr (sizeof(V) == 4) return __builtin_bswap32(v);
  if constexpr (sizeof(V) == 8) return __builtin_bswap64(v);
}

template <std::unsigned_integral V>
constexpr V to_big(V v) {
  return std::endian::native == std::endian::little ? swap_bytes(v) : v;
}

template <std::unsigned_integral V>
class BigEndian {
 public:
  constexpr BigEndian() = default;
  constexpr explicit BigEndian(V v) { set(v); }
  [[nodiscard]] constexpr V get() const { return to_big(std::bit_cast<V>(raw_)); }
  constexpr void set(V v) { raw_ = std::bit_cast<Raw>(to_big(v)); }

 private:
  struct Raw {
    unsigned char b[sizeof(V)];
  };
  Raw raw_{};
};

// A word whose high byte is flags and whose low 24 bits are a number (DestQP, PSN, MSN, SrcQP).
class Be8_24 {
 public:
  constexpr Be8_24() = default;
  constexpr Be8_24(std::uint8_t high, std::uint32_t low) { set(high, low); }
  [[nodiscard]] constexpr std::uint8_t high() const {
    return static_cast<std::uint8_t>(word_.get() >> 24);
  }
  [[nodiscard]] constexpr std::uint32_t low() const { return word_.get() & 0xff'ffff; }
  constexpr void set(std::uint8_t high, std::uint32_t low) {
    word_.set(std::uint32_t{high} << 24 | (low & 0xff'ffff));
  }

 private:
  BigEndian<std::uint32_t> word_;
};

using Be16 = BigEndian<std::uint16_t>;
using Be32 = BigEndian<std::uint32_t>;
using Be64 = BigEndian<std::uint64_t>;
static_assert(sizeof(Be64) == 8 && alignof(Be64) == 1 && sizeof(Be8_24) == 4 &&
              alignof(Be8_24) == 1);

}  // namespace uroce
