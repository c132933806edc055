// SPDX-License-Identifier: BSD-2-Clause
// How many packets may be unacknowledged on a path that loses some: three times what a round trip's
// time gave lately. What waits behind a gap for a retransmission, and for that of a retransmission,
// fits into it, and so into the peer's stash; and a path that loses because it is full is not
// filled further, since what it gives is what counts. A path that loses nothing has no limit: ours
// are links that push back, or windows that fit the receiver (window.h).
//
// A round ends when the first packet sent in it is acknowledged.
//
// When going back to a packet was of no use, it goes alone until it is answered: a path that loses
// packets at a regular distance would else lose the same one of each try, if what a try sends is as
// long as some of these distances.
#pragma once

#include <cstdint>

#include "base/psn.h"
#include "uroce/time.h"

namespace uroce::transport {

struct Flight {
  static constexpr std::uint32_t kUnlimited = ~std::uint32_t{0};
  std::uint32_t limit = kUnlimited;
  std::uint32_t best = 0;         // acknowledged in a round trip's time, lately at most
  std::uint32_t calm_rounds = 0;  // without a loss
  bool is_calm = true;            // this one
  bool has_seen_losses = false;
  Instant round_began{};
  Psn round_start;  // the oldest unacknowledged PSN when it began
  Psn round_end;    // the next to send then

  [[nodiscard]] bool is_one() const { return limit == 1; }
  [[nodiscard]] bool is_limited() const { return limit != kUnlimited; }
  // Packets more, while so many are unacknowledged.
  [[nodiscard]] std::uint32_t room(std::uint32_t unacked) const {
    return unacked >= limit ? 0 : limit - unacked;
  }
};

// For a path whose rounds were not followed, since nothing limited it; else the latest one's end
// may be so old that it seems to lie ahead.
void begin_round(Flight& flight, Instant now, Psn oldest_unacked, Psn next_to_send);
void on_loss(Flight& flight);
// One packet, or one READ, until there is progress.
void limit_to_one(Flight& flight);
void on_progress(Flight& flight, Instant now, Duration round_trip, Psn oldest_unacked,
                 Psn next_to_send);

}  // namespace uroce::transport
