// SPDX-License-Identifier: BSD-2-Clause
// Points in time and spans of time, in nanoseconds. There is no way to read a clock from here:
// every function that needs the time is handed it.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace uroce {

struct Duration {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
  friend constexpr Duration operator*(Duration a, std::int64_t n) { return {a.ns * n}; }
};

constexpr Duration nanoseconds(std::int64_t n) { return {n}; }
constexpr Duration microseconds(std::int64_t n) { return {n * 1'000}; }
constexpr Duration milliseconds(std::int64_t n) { return {n * 1'000'000}; }

// Since an epoch that only the clock knows.
struct Instant {
  std::int64_t ns = 0;

  // Later than every deadline: "no deadline".
  static constexpr Instant never() { return {std::numeric_limits<std::int64_t>::max()}; }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant t, Duration d) { return {t.ns + d.ns}; }
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.ns - b.ns}; }
};

}  // namespace uroce
