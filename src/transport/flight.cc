// SPDX-License-Identifier: BSD-2-Clause
#include "transport/flight.h"

#include <algorithm>

namespace uroce::transport {
namespace {

inline constexpr std::uint32_t kGain = 3;
inline constexpr std::uint32_t kLimitMin = 32;
inline constexpr std::uint32_t kCalmRounds = 64;  // after so many there is no limit again

void set_limit(Flight& flight) { flight.limit = std::max(flight.best * kGain, kLimitMin); }

// Recovery makes a round longer than a round trip: what counts is the rate.
std::uint32_t acked_per_round_trip(const Flight& flight, Instant now, Duration round_trip,
                                   Psn oldest_unacked) {
  const std::int64_t acked = (oldest_unacked - flight.round_start.value()).value();
  const std::int64_t elapsed = (now - flight.round_began).ns;
  if (elapsed <= round_trip.ns) return static_cast<std::uint32_t>(acked);
  return static_cast<std::uint32_t>(acked * round_trip.ns / elapsed);
}

}  // namespace

void begin_round(Flight& flight, Instant now, Psn oldest_unacked, Psn next_to_send) {
  flight.round_began = now;
  flight.round_start = oldest_unacked;
  flight.round_end = next_to_send;
}

void on_loss(Flight& flight) {
  flight.is_calm = false;
  flight.has_seen_losses = true;
  if (!flight.is_limited()) set_limit(flight);
}

void limit_to_one(Flight& flight) { flight.limit = 1; }

void on_progress(Flight& flight, Instant now, Duration round_trip, Psn oldest_unacked,
                 Psn next_to_send) {
  if (flight.is_one()) set_limit(flight);
  if (is_before(oldest_unacked, flight.round_end)) return;
  const std::uint32_t acked = acked_per_round_trip(flight, now, round_trip, oldest_unacked);
  flight.best = std::max(acked, flight.best - flight.best / 8);
  flight.calm_rounds = flight.is_calm ? flight.calm_rounds + 1 : 0;
  flight.is_calm = true;
  begin_round(flight, now, oldest_unacked, next_to_send);
  if (flight.is_limited()) set_limit(flight);
  if (flight.calm_rounds >= kCalmRounds) flight.limit = Flight::kUnlimited;
}

}  // namespace uroce::transport
