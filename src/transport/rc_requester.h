// SPDX-License-Identifier: BSD-2-Clause
// The requester's half of a reliable connection (IBTA 9.7.3, 9.7.5, 9.7.7): what was posted, what
// was sent, what was acknowledged. The rules are in rc_requester_send.cc and
// rc_requester_receive.cc; retries and timers in retry.cc.
//
// Work requests, by index in the send queue:
//
//   oldest_index ........ send_index ........ assigned_index ........ posted
//   | sent, unfinished    | to send again     | never sent             |
//
// Packets, by PSN: oldest_unacked_psn <= send_psn <= next_psn. A PSN is given out once, when its
// work request is first taken up; rewinding only moves the sending position (send_index, send_psn)
// back. A refused frame is rewound to in the same way.
#pragma once

#include <array>
#include <cstdint>

#include "base/psn.h"
#include "transport/flight.h"
#include "transport/round_trip.h"
#include "transport/work_request.h"
#include "uroce/time.h"

namespace uroce::transport {

// More would not be sensible: the responder must keep something for each.
inline constexpr std::uint32_t kReadAtomicMax = 128;

// Packets that are missing at the peer and are sent again before all that follows them.
struct Hole {
  Psn first;
  std::uint32_t packets = 0;
  Psn frontier;  // what was not sent before they were found missing
  Instant sent_at{};
  bool is_told = false;  // by the peer; else it is a guess
  bool is_due = false;   // not sent yet, or refused
  [[nodiscard]] Psn end() const { return first + packets; }
};

// What is being done about losses (recovery.h).
struct Recovery {
  static constexpr std::size_t kHolesMax = 64;
  enum class Told : std::uint8_t { kNothing, kAck, kSequenceNak };
  bool is_proven = false;        // the peer has kept what came behind a gap
  bool is_reading = false;       // the holes are those of READs (read_gaps.h)
  bool asks_for_parts = false;   // ... or once were
  bool answers_parts = false;    // the peer answers any part of a READ, at any time
  Told told = Told::kNothing;    // while is_reading: what has to wait until everything was read
  std::uint8_t failures = 0;     // to find that it does, since the connection began
  std::uint8_t early_left = 0;   // retransmissions for silence, before the ACK timer expires
  std::uint8_t judged_left = 0;  // and for answers that came instead of others
  std::uint8_t hole_count = 0;
  std::uint8_t due_count = 0;  // of the holes
  Psn resent_end;              // behind everything that was ever sent twice
  Psn read_frontier;           // while is_reading: behind the farthest that has come
  Psn told_psn;
  std::array<Hole, kHolesMax> holes;
};

struct RcRequester {
  std::uint32_t oldest_index = 0;
  std::uint32_t send_index = 0;
  std::uint32_t assigned_index = 0;
  Psn oldest_unacked_psn;
  Psn send_psn;
  Psn next_psn;

  std::uint32_t unreleased = 0;        // completed requests that no completion has given back yet
  std::uint32_t packets_unasked = 0;   // sent since the last AckReq
  std::uint32_t cost_unasked = 0;      // the same, as the peer's window counts it
  std::uint32_t window_used = 0;       // our share of the peer's receive window, in bytes
  std::uint32_t read_window_used = 0;  // ... and of our own, by READ responses on their way
  // The last PSN of each READ or atomic request in flight, oldest first.
  std::uint32_t reads_outstanding = 0;
  std::uint32_t reads_oldest = 0;

  bool rewound = false;          // since the last progress: another NAK for the gap changes nothing
  bool rnr_waiting = false;      // silent until the deadline: the peer was not ready
  bool was_not_ready = false;    // ... since the last progress
  bool repeats_unasked = false;  // the ACK timer was set for that (retry.h)
  bool waiting_for_window = false;
  bool has_waited = false;  // for it, since the last packet was sent
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;

  RoundTrip round_trip;
  Flight flight;
  Recovery recovery;

  std::array<Psn, kReadAtomicMax> read_ends;
};

}  // namespace uroce::transport
