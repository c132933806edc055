// SPDX-License-Identifier: BSD-2-Clause
#include "transport/recovery.h"

#include <algorithm>

#include "transport/read_gaps.h"
#include "transport/retry.h"

namespace uroce::transport {
namespace {

// So many gaps are tried on a peer that has never shown that it keeps what follows them.
inline constexpr std::uint8_t kFailuresMax = 8;
// In one ACK time-out.
inline constexpr std::uint8_t kEarlyMax = 3;
inline constexpr std::uint8_t kJudgedMax = 255;

bool is_lossless(const HcaState& hca, const Qp& qp) {
  return hca.links[qp.link].facts.trusted_memory;
}

bool has_something_on_its_way(const RcRequester& requester) {
  return requester.oldest_unacked_psn != requester.send_psn;
}

// What is kept behind a gap is the peer's affair with data, and ours with a READ (read_gaps.h).
bool is_data_missing(const Qp& qp) {
  const SendWqe& oldest = qp.send_queue.at(qp.requester.oldest_index);
  return !is_read_or_atomic(oldest.operation) && oldest.status == WcStatus::kSuccess;
}

bool is_in(const Hole& hole, Psn psn) {
  return is_at_or_before(hole.first, psn) && is_before(psn, hole.end());
}

Hole* find_hole(Recovery& recovery, Psn psn) {
  for (Hole& hole : holes(recovery)) {
    if (is_in(hole, psn)) return &hole;
  }
  return nullptr;
}

void add_hole(HcaState& hca, Qp& qp, Psn first, std::uint32_t packets, bool is_told) {
  RcRequester& requester = qp.requester;
  Recovery& recovery = requester.recovery;
  if (recovery.hole_count == Recovery::kHolesMax) {
    if (first != requester.oldest_unacked_psn) return;
    drop_hole(qp, recovery.holes.back());  // the peer will tell of it again
  }
  const std::uint32_t sent = (requester.send_psn - first.value()).value();
  recovery.holes[recovery.hole_count++] = {.first = first,
                                           .packets = std::min(packets, sent),
                                           .frontier = requester.send_psn,
                                           .is_told = is_told,
                                           .is_due = true};
  ++recovery.due_count;
  if (is_told) stop_probe(requester.round_trip);
  make_ready(hca, qp);
}

// The answer covers `hole`, which was sent again, and nothing behind it.
void on_no_more(HcaState& hca, Qp& qp, const Hole& hole) {
  Recovery& recovery = qp.requester.recovery;
  const Psn oldest = qp.requester.oldest_unacked_psn;
  if (oldest == hole.frontier || find_hole(recovery, oldest) != nullptr) return;
  if (recovery.is_proven && is_data_missing(qp)) {
    add_hole(hca, qp, oldest, hole.packets * 2, true);
    return;
  }
  if (hole.is_told) ++recovery.failures;
  go_back(hca, qp);
}

// Of packets sent again because an answer was late: if this can be the answer to the second one,
// the first was lost. Else it was only late, and the time that is measured is a true one.
void judge_guesses(Instant now, RcRequester& requester) {
  if (requester.recovery.is_reading) return;
  for (const Hole& hole : holes(requester.recovery)) {
    if (hole.is_told || hole.is_due || !is_usual(requester.round_trip, now - hole.sent_at))
      continue;
    stop_probe(requester.round_trip);
    on_loss(requester.flight);
  }
}

// What was acknowledged takes its holes along, and the last of them tells about the peer.
[[gnu::cold]] void judge(HcaState& hca, Qp& qp) {
  Recovery& recovery = qp.requester.recovery;
  if (recovery.is_reading) return;
  const Psn oldest = qp.requester.oldest_unacked_psn;
  Hole filled;
  std::uint8_t kept = 0;
  for (Hole& hole : holes(recovery)) {
    if (is_before(oldest, hole.end())) {
      if (is_before(hole.first, oldest)) {
        hole.packets = static_cast<std::uint32_t>(distance(oldest, hole.end()));
        hole.first = oldest;
      }
      recovery.holes[kept++] = hole;
    } else if (hole.is_due) {
      --recovery.due_count;  // it came late, and was not lost
    } else if (filled.packets == 0 || is_before(filled.first, hole.first)) {
      filled = hole;
    }
  }
  recovery.hole_count = kept;
  if (filled.packets == 0) return;
  if (oldest == filled.end()) {
    on_no_more(hca, qp, filled);
  } else if (filled.is_told) {
    recovery.is_proven = true;
  }
}

void start_early_timer(HcaState& hca, Instant now, Qp& qp) {
  const RoundTrip& trip = qp.requester.round_trip;
  const bool runs = qp.ack_timer.is_running() && !qp.requester.rnr_waiting && trip.is_known() &&
                    qp.requester.recovery.early_left != 0;
  hca.early_deadlines.set(qp.early_timer, runs ? now + patience(trip) : Instant::never());
}

}  // namespace

void on_acknowledged(HcaState& hca, Instant now, Qp& qp) {
  RcRequester& requester = qp.requester;
  // Where nothing can be lost, only a peer that did not run limits the flight.
  if (is_lossless(hca, qp) && !requester.flight.is_limited()) return;
  if (requester.recovery.hole_count != 0) judge_guesses(now, requester);
  on_progress(requester.round_trip, now, requester.oldest_unacked_psn);
  on_progress(requester.flight, now, requester.round_trip.shortest, requester.oldest_unacked_psn,
              requester.send_psn);
  if (requester.recovery.hole_count != 0) judge(hca, qp);
}

void on_hint(HcaState& hca, Qp& qp, Psn psn) {
  RcRequester& requester = qp.requester;
  if (requester.recovery.is_reading) return;
  if (!requester.recovery.is_proven || is_at_or_before(psn, requester.oldest_unacked_psn) ||
      !is_before(psn, requester.send_psn) || find_hole(requester.recovery, psn) != nullptr) {
    return;
  }
  ++hca.counters.hints_received;
  add_hole(hca, qp, psn, 1, true);
}

void restart_early_timer(HcaState& hca, Instant now, Qp& qp) {
  if (is_lossless(hca, qp)) return;
  qp.requester.recovery.early_left = kEarlyMax;
  qp.requester.recovery.judged_left = kJudgedMax;
  start_early_timer(hca, now, qp);
}

void on_early_deadline(HcaState& hca, Instant now, Qp& qp) {
  RcRequester& requester = qp.requester;
  Recovery& recovery = requester.recovery;
  if (!has_something_on_its_way(requester) || recovery.early_left == 0) return;
  // What is due leaves first; that may be lost, too.
  if (recovery.due_count != 0) return start_early_timer(hca, now, qp);
  --recovery.early_left;
  lose_patience(requester.round_trip);
  ++hca.counters.early_retransmissions;
  Hole* const missing = find_hole(recovery, requester.oldest_unacked_psn);
  if (recovery.is_reading && recovery.hole_count != 0) {
    stop_probe(requester.round_trip);
    ask_again(hca, qp);
  } else if (!is_data_missing(qp)) {
    go_back(hca, qp);
  } else if (missing != nullptr) {
    missing->is_due = true;
    ++recovery.due_count;
    make_ready(hca, qp);
  } else {
    add_hole(hca, qp, requester.oldest_unacked_psn, 1, false);
  }
  start_early_timer(hca, now, qp);
}

bool is_being_recovered(Qp& qp) {
  return find_hole(qp.requester.recovery, qp.requester.oldest_unacked_psn) != nullptr;
}

bool may_read_on(const HcaState& hca, const Qp& qp) {
  return !is_lossless(hca, qp) && qp.requester.recovery.hole_count == 0;
}

bool recover_oldest(HcaState& hca, Qp& qp) {
  const Recovery& recovery = qp.requester.recovery;
  const bool may_keep = recovery.is_proven || recovery.failures < kFailuresMax;
  if (is_lossless(hca, qp) || !may_keep || !is_data_missing(qp) ||
      !has_something_on_its_way(qp.requester)) {
    return false;
  }
  ++hca.counters.selective_retransmissions;
  on_loss(qp.requester.flight);
  add_hole(hca, qp, qp.requester.oldest_unacked_psn, 1, true);
  return true;
}

void abandon_recovery(Qp& qp) {
  Recovery& recovery = qp.requester.recovery;
  recovery.hole_count = recovery.due_count = 0;
  recovery.is_reading = false;
  recovery.told = Recovery::Told::kNothing;
}

Hole& next_due_hole(Qp& qp) {
  std::span<Hole> all = holes(qp.requester.recovery);
  return *std::find_if(all.begin(), all.end(), [](const Hole& hole) { return hole.is_due; });
}

void on_sent_again(Instant now, Qp& qp, Hole& hole) {
  Recovery& recovery = qp.requester.recovery;
  hole.is_due = false;
  hole.sent_at = now;
  --recovery.due_count;
  // Of what was sent twice already nobody knows which one is answered.
  const bool is_new = is_at_or_before(recovery.resent_end, hole.first);
  const bool is_oldest = hole.first == qp.requester.oldest_unacked_psn;
  if (is_new && is_oldest && hole.is_told) {
    start_probe(qp.requester.round_trip, now, hole.end() - 1);
  }
  if (is_new) recovery.resent_end = hole.end();
}

void drop_hole(Qp& qp, Hole& hole) {
  Recovery& recovery = qp.requester.recovery;
  if (hole.is_due) --recovery.due_count;
  hole = recovery.holes[--recovery.hole_count];
}

void unsend_missing(HcaState& hca, Qp& qp, Psn first) {
  Recovery& recovery = qp.requester.recovery;
  for (Hole& hole : holes(recovery)) {
    if (hole.first != first || hole.is_due) continue;
    hole.is_due = true;
    ++recovery.due_count;
    hca.counted_and_refused += hole.packets;
  }
  stop_probe(qp.requester.round_trip);
}

}  // namespace uroce::transport
