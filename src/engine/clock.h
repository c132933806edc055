// SPDX-License-Identifier: BSD-2-Clause
// The only clock: CLOCK_MONOTONIC in nanoseconds (and for captures the time of day).
//
// Reading it costs 52 ns on a virtual machine of today (measured), a fifth of what a small message
// may cost in all. `TurnClock` therefore counts processor ticks between two readings, and reads
// again every half millisecond, so that its error stays far below the shortest timer. How long a
// tick takes it learns from its readings, and believes none that no processor could have: a virtual
// machine that moves to another host may take its counter back, or far forward.
#pragma once

#include <cstdint>

#include "uroce/time.h"

namespace uroce::engine {

[[nodiscard]] Instant monotonic_now();

// Nanoseconds since 1970, for what people read; it may jump.
[[nodiscard]] std::uint64_t wall_clock_now();

// For whoever holds the shard's lock.
class TurnClock {
 public:
  // Never goes back.
  [[nodiscard]] Instant now() {
    const std::uint64_t ticks = read_ticks();
    if (is_reading_due(ticks)) [[unlikely]]
      return read(ticks);
    return between_readings(ticks);
  }

  // What it consists of, for tests with a counter of their own.
  [[nodiscard]] bool is_reading_due(std::uint64_t ticks) const {
    return ticks - anchor_ticks_ >= ticks_until_reading_;
  }
  [[nodiscard]] Instant between_readings(std::uint64_t ticks) {
    const std::uint64_t passed = ticks - anchor_ticks_;
    return not_back({anchor_.ns + static_cast<std::int64_t>((passed * scale_) >> kScaleBits)});
  }
  // `t` was read between `ticks` and `ticks_after`.
  [[nodiscard]] Instant take_reading(std::uint64_t ticks, Instant t, std::uint64_t ticks_after);

 private:
  static constexpr unsigned kScaleBits = 32;

  static std::uint64_t read_ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
  }
  [[gnu::cold]] Instant read(std::uint64_t ticks);
  [[nodiscard]] std::uint64_t believable_scale(std::uint64_t passed_ns, std::uint64_t passed) const;
  Instant not_back(Instant t) { return latest_ = t > latest_ ? t : latest_; }

  std::uint64_t anchor_ticks_ = 0;
  std::uint64_t ticks_until_reading_ = 0;  // 0: the rate is not known yet
  std::uint64_t scale_ = 0;                // nanoseconds a tick, as a fraction of 2^32
  Instant anchor_{};
  Instant latest_{};
};

}  // namespace uroce::engine
