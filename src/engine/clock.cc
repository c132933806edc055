// SPDX-License-Identifier: BSD-2-Clause
#include "engine/clock.h"

#include <ctime>

namespace uroce::engine {
namespace {

constexpr std::int64_t kReadEveryNs = 500'000;
// Between two readings closer together than this the rate would be a guess.
constexpr std::int64_t kRateNeedsNs = 200'000;
// A reading that comes later than this (nobody took a turn) says nothing about the recent rate.
constexpr std::int64_t kRateIsStaleNs = 1'000'000'000;
// A reading that took longer (10 us at 2 GHz) was interrupted, and does not say what time it was at
// its tick.
constexpr std::uint64_t kReadingTicksMax = 20'000;
// A tick takes from 0.05 ns (20 GHz) to 1000 ns, as in the slowest counters of emulated processors.
constexpr std::uint64_t kScaleMin = (std::uint64_t{1} << 32) / 20;
constexpr std::uint64_t kScaleMax = std::uint64_t{1'000} << 32;

}  // namespace

Instant monotonic_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return {std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec};
}

std::uint64_t wall_clock_now() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

Instant TurnClock::read(std::uint64_t ticks) {
  const Instant t = monotonic_now();
  return take_reading(ticks, t, read_ticks());
}

Instant TurnClock::take_reading(std::uint64_t ticks, Instant t, std::uint64_t ticks_after) {
  const std::int64_t passed_ns = (t - anchor_).ns;
  const bool is_first = anchor_ == Instant{};
  const bool was_interrupted = ticks_after - ticks > kReadingTicksMax;
  if (was_interrupted || (!is_first && passed_ns < kRateNeedsNs)) return not_back(t);
  if (!is_first && passed_ns < kRateIsStaleNs) {
    scale_ = believable_scale(static_cast<std::uint64_t>(passed_ns), ticks - anchor_ticks_);
    ticks_until_reading_ =
        scale_ == 0 ? 0 : (static_cast<std::uint64_t>(kReadEveryNs) << kScaleBits) / scale_;
  }
  anchor_ = t;
  anchor_ticks_ = ticks;
  return not_back(t);
}

// 0, and so to be learned anew, where the counter has jumped or does not count. Less than a second
// has passed, so nothing here overflows.
std::uint64_t TurnClock::believable_scale(std::uint64_t passed_ns, std::uint64_t passed) const {
  if (passed == 0) return 0;
  const std::uint64_t scale = (passed_ns << kScaleBits) / passed;
  if (scale < kScaleMin || scale > kScaleMax) return 0;
  const bool is_as_before = scale_ == 0 || (scale / 2 <= scale_ && scale_ / 2 <= scale);
  return is_as_before ? scale : 0;
}

}  // namespace uroce::engine
