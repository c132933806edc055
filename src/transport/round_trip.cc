// SPDX-License-Identifier: BSD-2-Clause
#include "transport/round_trip.h"

#include <algorithm>

namespace uroce::transport {
namespace {

inline constexpr std::uint8_t kBackoffMax = 6;
// What a peer may take longer than it ever did: it was not running.
inline constexpr Duration kAnswerSlack = microseconds(100);

void add_sample(RoundTrip& trip, Duration sample) {
  if (!trip.is_known()) {
    trip.smoothed = trip.shortest = sample;
    trip.variation = {sample.ns / 2};
    return;
  }
  const std::int64_t off = sample.ns - trip.smoothed.ns;
  trip.variation.ns += ((off < 0 ? -off : off) - trip.variation.ns) / 4;
  trip.smoothed.ns += off / 8;
  // A path that became longer is believed after some samples.
  trip.shortest = std::min(sample, Duration{trip.shortest.ns + trip.shortest.ns / 64});
}

Duration longest_usual(const RoundTrip& trip) {
  return trip.smoothed + std::max(trip.variation * 4, kAnswerSlack);
}

}  // namespace

void start_probe(RoundTrip& trip, Instant now, Psn psn) {
  trip.probe = psn;
  trip.probe_sent_at = now;
}

void stop_probe(RoundTrip& trip) { trip.probe_sent_at = Instant::never(); }

void on_progress(RoundTrip& trip, Instant now, Psn oldest_unacked) {
  if (trip.backoff != 0) --trip.backoff;
  if (!trip.is_measuring() || !is_before(trip.probe, oldest_unacked)) return;
  // Never 0, which is "not known".
  add_sample(trip, std::max(now - trip.probe_sent_at, nanoseconds(1)));
  stop_probe(trip);
}

bool is_usual(const RoundTrip& trip, Duration time) {
  return trip.shortest <= time && time <= longest_usual(trip);
}

Duration patience(const RoundTrip& trip) { return longest_usual(trip) * (1 << trip.backoff); }

void lose_patience(RoundTrip& trip) {
  trip.backoff = std::min<std::uint8_t>(trip.backoff + 1, kBackoffMax);
}

}  // namespace uroce::transport
