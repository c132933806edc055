// SPDX-License-Identifier: BSD-2-Clause
// Going back and trying again (IBTA 9.7.5.1.3, 9.7.6): the one ACK timer of a requester, its retry
// counters, and the rewinding that NAKs, time-outs and refused frames share.
//
// The timer runs while anything is unacknowledged, from the last progress. A sequence NAK or an
// expired timer uses up one of retry_cnt; progress gives all of them back. An RNR NAK silences the
// requester for the time it names and uses up one of rnr_retry, where 7 is without end; a gap that
// is reported behind it, once for each, costs nothing more. The RNR wait and the ACK timer exclude
// each other and share one. What can be done sooner and with less is in recovery.h.
#pragma once

#include "transport/hca_state.h"

namespace uroce::transport {

// (Re)starts the timer if there is something to wait for, and stops it otherwise.
void restart_timer(HcaState& hca, Instant now, Qp& qp);
// Starts it if it does not run.
void start_timer(HcaState& hca, Instant now, Qp& qp);

// Something was acknowledged: the counters are full again.
void on_progress(HcaState& hca, Instant now, Qp& qp);

// The next packet sent is the oldest that was not acknowledged.
void rewind(HcaState& hca, Qp& qp);
// The same, because something was lost.
void go_back(HcaState& hca, Qp& qp);

// What waits_unasked() is sent once more, which uses up no retry: not before the burst is over,
// since its frames may still be refused.
[[gnu::cold]] void repeat_unasked(HcaState& hca, Qp& qp);

// A NAK for a gap, explicit or implied by a response that overtook another.
void on_sequence_nak(HcaState& hca, Instant now, Qp& qp);
// One that READ responses imply and go on behind. False: they are not kept.
[[nodiscard, gnu::cold]] bool on_read_gap(HcaState& hca, Instant now, Qp& qp);
void on_rnr_nak(HcaState& hca, Instant now, Qp& qp, std::uint8_t timer);
void on_deadline(HcaState& hca, Instant now, Qp& qp);

// The QP leaves the sending states: no timer, no list, no share of a window.
void stop_sending(HcaState& hca, Qp& qp);

}  // namespace uroce::transport
