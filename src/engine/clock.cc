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
  const std::int64_t passed_ns = (t - anchor_).ns;
  const std::uint64_t passed = ticks - anchor_ticks_;
  const bool is_first = anchor_ == Instant{};
  const bool was_interrupted = read_ticks() - ticks > kReadingTicksMax;
  if (was_interrupted || (!is_first && passed_ns < kRateNeedsNs)) {
    return latest_ = t > latest_ ? t : latest_;
  }
  if (!is_first && passed_ns < kRateIsStaleNs && static_cast<std::uint64_t>(passed_ns) < passed) {
    // Ticks are faster than 1 GHz here, so the fraction fits its 32 bits.
    scale_ = (static_cast<std::uint64_t>(passed_ns) << kScaleBits) / passed;
    ticks_until_reading_ = (static_cast<std::uint64_t>(kReadEveryNs) << kScaleBits) / scale_;
  }
  anchor_ = t;
  anchor_ticks_ = ticks;
  return latest_ = t > latest_ ? t : latest_;
}

}  // namespace uroce::engine
