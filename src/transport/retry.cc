// SPDX-License-Identifier: BSD-2-Clause
#include "transport/retry.h"

#include "transport/ack_request.h"
#include "transport/complete.h"
#include "transport/read_gaps.h"
#include "transport/recovery.h"
#include "transport/window.h"
#include "wire/aeth.h"

namespace uroce::transport {
namespace {

inline constexpr std::uint8_t kRnrRetryForever = 7;

// IBTA 9.7.6.1.3: T is at least this and at most four times this.
Duration ack_timeout(const Qp& qp) {
  return nanoseconds(std::int64_t{4096} << qp.attributes.timeout);
}

bool is_waiting_for_ack(const Qp& qp) {
  return qp.requester.oldest_index != qp.requester.assigned_index;
}

// One of retry_cnt is used up; false: there was none left.
bool use_retry(HcaState& hca, Qp& qp) {
  if (qp.requester.retries_left == 0) {
    ++hca.counters.retry_exceeded;
    fail_oldest(hca, qp, WcStatus::kRetryExceeded);
    return false;
  }
  --qp.requester.retries_left;
  return true;
}

void limit_flight(Instant now, RcRequester& requester) {
  Flight& flight = requester.flight;
  if (!flight.is_limited()) {
    begin_round(flight, now, requester.oldest_unacked_psn, requester.send_psn);
  }
  on_loss(flight);
  if (requester.rewound) limit_to_one(flight);
}

void on_ack_timeout(HcaState& hca, Instant now, Qp& qp) {
  const bool nothing_on_its_way = qp.requester.oldest_unacked_psn == qp.requester.send_psn;
  const bool is_stalled = hca.oracle != nullptr && qp.link == kLocalLink &&
                          hca.oracle->peer_stalled(qp.link, qp.attributes.path);
  const bool repeats = qp.requester.repeats_unasked;
  if (repeats && waits_unasked(qp)) rewind(hca, qp);
  if (repeats || is_stalled || (nothing_on_its_way && qp.requester.waiting_for_window)) {
    restart_timer(hca, now, qp);
    return;
  }
  ++hca.counters.timeouts;
  limit_flight(now, qp.requester);
  if (!use_retry(hca, qp)) return;
  go_back(hca, qp);
  restart_timer(hca, now, qp);
}

}  // namespace

void restart_timer(HcaState& hca, Instant now, Qp& qp) {
  if (qp.requester.rnr_waiting) return;
  // An answer to something older does not put off what is to be repeated at once.
  if (qp.requester.repeats_unasked && waits_unasked(qp)) return;
  qp.requester.repeats_unasked = false;
  const bool runs = is_waiting_for_ack(qp) && qp.attributes.timeout != 0;
  hca.deadlines.set(qp.ack_timer, runs ? now + ack_timeout(qp) : Instant::never());
  restart_early_timer(hca, now, qp);
}

void start_timer(HcaState& hca, Instant now, Qp& qp) {
  if (!qp.ack_timer.is_running()) restart_timer(hca, now, qp);
}

void on_progress(HcaState& hca, Instant now, Qp& qp) {
  RcRequester& requester = qp.requester;
  requester.rewound = false;
  requester.retries_left = qp.attributes.retry_count;
  requester.rnr_retries_left = qp.attributes.rnr_retry;
  requester.rnr_waiting = requester.was_not_ready = false;
  on_acknowledged(hca, now, qp);
  restart_timer(hca, now, qp);
}

void rewind(HcaState& hca, Qp& qp) {
  RcRequester& requester = qp.requester;
  release_window(hca, qp, requester.window_used);
  release_read_window(hca, qp, requester.read_window_used);
  requester.reads_outstanding = 0;
  requester.send_index = requester.oldest_index;
  requester.send_psn = requester.oldest_unacked_psn;
  requester.packets_unasked = requester.cost_unasked = 0;
  abandon_recovery(qp);
  make_ready(hca, qp);
}

void go_back(HcaState& hca, Qp& qp) {
  RcRequester& requester = qp.requester;
  ++hca.counters.rewinds;
  hca.counters.retransmitted_packets +=
      static_cast<std::uint32_t>(distance(requester.oldest_unacked_psn, requester.send_psn));
  stop_probe(requester.round_trip);
  requester.recovery.resent_end = requester.send_psn;
  rewind(hca, qp);
  requester.rewound = true;
}

void repeat_unasked(HcaState& hca, Qp& qp) {
  qp.requester.repeats_unasked = true;
  hca.deadlines.set(qp.ack_timer, Instant{});
}

void on_sequence_nak(HcaState& hca, Instant now, Qp& qp) {
  const RcRequester& requester = qp.requester;
  if (requester.rewound || requester.rnr_waiting || is_being_recovered(qp)) return;
  // Linux's rxe reports what follows a request that it was not ready for as a gap, at every try.
  if (!requester.was_not_ready && !use_retry(hca, qp)) return;
  if (!recover_oldest(hca, qp)) go_back(hca, qp);
  restart_timer(hca, now, qp);
}

bool on_read_gap(HcaState& hca, Instant now, Qp& qp) {
  const RcRequester& requester = qp.requester;
  if (requester.rnr_waiting || !may_read_on(hca, qp)) return false;
  // Since a rewind the retry is used up already.
  const bool is_retry = !requester.rewound && !requester.was_not_ready;
  if (is_retry && !use_retry(hca, qp)) return true;  // it is over
  begin_reading(qp);
  restart_timer(hca, now, qp);
  return true;
}

void on_rnr_nak(HcaState& hca, Instant now, Qp& qp, std::uint8_t timer) {
  RcRequester& requester = qp.requester;
  if (requester.rnr_waiting) return;  // a duplicate: this wait is under way
  if (qp.attributes.rnr_retry != kRnrRetryForever) {
    if (requester.rnr_retries_left == 0) {
      ++hca.counters.rnr_retry_exceeded;
      fail_oldest(hca, qp, WcStatus::kRnrRetryExceeded);
      return;
    }
    --requester.rnr_retries_left;
  }
  go_back(hca, qp);
  requester.rewound = false;  // the responder reports a gap anew after it was not ready
  requester.rnr_waiting = requester.was_not_ready = true;
  hca.early_deadlines.set(qp.early_timer, Instant::never());
  hca.deadlines.set(qp.ack_timer, now + wire::kRnrTimers[timer % wire::kRnrTimers.size()]);
}

void on_deadline(HcaState& hca, Instant now, Qp& qp) {
  if (qp.requester.rnr_waiting) {
    qp.requester.rnr_waiting = false;
    make_ready(hca, qp);
    start_timer(hca, now, qp);
  } else if (is_waiting_for_ack(qp)) {
    on_ack_timeout(hca, now, qp);
  }
}

void stop_sending(HcaState& hca, Qp& qp) {
  hca.deadlines.remove(qp.ack_timer);
  hca.early_deadlines.remove(qp.early_timer);
  abandon_recovery(qp);
  release_window(hca, qp, qp.requester.window_used);
  release_read_window(hca, qp, qp.requester.read_window_used);
  qp.requester.reads_outstanding = 0;
  qp.requester.rnr_waiting = false;
}

}  // namespace uroce::transport
