// SPDX-License-Identifier: BSD-2-Clause
// Packet sequence number: 24 bits, compared by serial arithmetic (IBTA 9.7.2).
// There is no operator<: "before" is not transitive on a ring, so a sorted container of PSNs would
// be wrong.
#pragma once

#include <cstdint>

namespace uroce {

class Psn {
 public:
  constexpr Psn() = default;
  constexpr explicit Psn(std::uint32_t v) : v_(v & 0xff'ffff) {}
  [[nodiscard]] constexpr std::uint32_t value() const { return v_; }
  constexpr Psn operator+(std::uint32_t n) const { return Psn(v_ + n); }
  constexpr Psn operator-(std::uint32_t n) const { return Psn(v_ - n); }
  constexpr Psn& operator++() { return *this = *this + 1; }
  constexpr Psn& operator+=(std::uint32_t n) { return *this = *this + n; }
  friend constexpr bool operator==(Psn, Psn) = default;

 private:
  std::uint32_t v_ = 0;
};

// Signed steps from `from` to `to`, in [-2^23, 2^23).
constexpr std::int32_t distance(Psn from, Psn to) {
  return static_cast<std::int32_t>((to.value() - from.value()) << 8) >> 8;
}
constexpr bool is_before(Psn a, Psn b) { return distance(a, b) > 0; }
// a is b or before it.
constexpr bool is_at_or_before(Psn a, Psn b) { return distance(a, b) >= 0; }

static_assert(distance(Psn(0xff'ffff), Psn(0)) == 1 && is_before(Psn(0xff'fff0), Psn(3)));
static_assert(distance(Psn(0), Psn(0x80'0000)) == -0x80'0000);

}  // namespace uroce
