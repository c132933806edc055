// SPDX-License-Identifier: BSD-2-Clause
// How long a peer takes to answer, measured on one packet at a time that asks for an answer (the
// averages are those of RFC 6298). Nothing is learnt from packets that were sent twice, nor behind
// a gap, where answers wait for its end.
#pragma once

#include <cstdint>

#include "base/psn.h"
#include "uroce/time.h"

namespace uroce::transport {

struct RoundTrip {
  Psn probe;  // answered when the oldest unacknowledged PSN is behind it
  Instant probe_sent_at = Instant::never();
  Duration smoothed{0};  // 0: not known
  Duration variation{0};
  Duration shortest{0};      // lately
  std::uint8_t backoff = 0;  // times two, for each time that patience ended in vain

  [[nodiscard]] bool is_known() const { return smoothed.ns != 0; }
  [[nodiscard]] bool is_measuring() const { return probe_sent_at != Instant::never(); }
};

void start_probe(RoundTrip& trip, Instant now, Psn psn);
void stop_probe(RoundTrip& trip);
void on_progress(RoundTrip& trip, Instant now, Psn oldest_unacked);

// An answer that comes so long after a packet may well be one to it.
[[nodiscard]] bool is_usual(const RoundTrip& trip, Duration time);
// How long to wait for an answer before something is sent again; doubled by each call of
// lose_patience.
[[nodiscard]] Duration patience(const RoundTrip& trip);
void lose_patience(RoundTrip& trip);

}  // namespace uroce::transport
