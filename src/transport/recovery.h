// SPDX-License-Identifier: BSD-2-Clause
// Getting over a loss without losing the rest (no section of the standard; nothing of it is new on
// the wire).
//
// The standard's requester goes back to the gap and sends everything behind it again, because its
// responder has dropped it. Ours keeps it (stash.h), and no packet says so. So at a gap only the
// first packet, the *hole*, is sent again, and the answer tells:
//
//   it acknowledges more than the hole       the peer keeps; nothing else needs to be done
//   just the hole, though more was sent      what follows is missing as well, or everything is:
//                                            go back; from a peer that is known to keep, the hole
//                                            is twice as long now
//
// A peer that never shows that it keeps is not tried any more after a few gaps. One hole takes a
// round trip; a responder that sees a requester behave like this hints at further ones meanwhile
// (rc_responder_send.cc).
//
// Silence is noticed by measured round trips long before the ACK timer expires: the oldest packet
// is sent again when an answer is late, at most three times an ACK time-out, each time waiting
// twice as long. That uses up no retry, so a failure is declared when the application's `timeout`
// and `retry_cnt` say and not earlier; with `timeout` 0 nothing is sent. The timers of this are
// apart from the ACK timers: nobody is woken for them who would sleep while the application polls
// (engine.cc).
#pragma once

#include <span>

#include "transport/hca_state.h"

namespace uroce::transport {

// Those that there are, in the order of their PSNs.
inline std::span<Hole> holes(Recovery& recovery) {
  return std::span(recovery.holes).first(recovery.hole_count);
}

// A frame was sent whose packet `psn` asks for an answer. Behind a gap that would tell of the gap.
inline void on_answer_asked(Instant now, Qp& qp, Psn psn) {
  RoundTrip& trip = qp.requester.round_trip;
  if (trip.is_measuring() || qp.requester.recovery.hole_count != 0) return;
  start_probe(trip, now, psn);
}
// Something was acknowledged; before anything else looks at it.
void on_acknowledged(HcaState& hca, Instant now, Qp& qp);
// The peer hints that `psn` is missing.
void on_hint(HcaState& hca, Qp& qp, Psn psn);

// Starts the early timer anew, as the ACK timer is; or stops it.
void restart_early_timer(HcaState& hca, Instant now, Qp& qp);
void on_early_deadline(HcaState& hca, Instant now, Qp& qp);

// The oldest packet is known to be missing, and on its way again.
[[nodiscard]] bool is_being_recovered(Qp& qp);
// Sends it again, and no more; false: everything has to be.
[[nodiscard]] bool recover_oldest(HcaState& hca, Qp& qp);
// READ responses may be kept from here on, while one is missing.
[[nodiscard]] bool may_read_on(const HcaState& hca, const Qp& qp);
// Everything is sent again, or nothing any more.
void abandon_recovery(Qp& qp);

// For who sends: there is a hole that is due (due_count); it was sent; it cannot be; it was
// refused.
[[nodiscard]] Hole& next_due_hole(Qp& qp);
void on_sent_again(Instant now, Qp& qp, Hole& hole);
void drop_hole(Qp& qp, Hole& hole);
void unsend_missing(HcaState& hca, Qp& qp, Psn first);

}  // namespace uroce::transport
