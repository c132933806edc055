// SPDX-License-Identifier: BSD-2-Clause
#include "transport/qp_lifecycle.h"

#include "transport/ack_request.h"
#include "transport/complete.h"
#include "transport/rc.h"
#include "transport/retry.h"
#include "transport/unreliable.h"
#include "transport/xrc_target.h"

namespace uroce::transport {
namespace {

using namespace qp_attribute;

void start_responder(Qp& qp) {
  RcResponder& responder = qp.responder;
  responder.expected_psn = qp.attributes.receive_psn;
  responder.msn = 0;
  responder.replay_limit = qp.attributes.max_dest_read_atomic;
}

void start_requester(Qp& qp) {
  RcRequester& requester = qp.requester;
  requester.oldest_unacked_psn = qp.attributes.send_psn;
  requester.send_psn = qp.attributes.send_psn;
  requester.next_psn = qp.attributes.send_psn;
  requester.flight.round_start = requester.flight.round_end = qp.attributes.send_psn;
  requester.recovery.resent_end = qp.attributes.send_psn;
  requester.retries_left = qp.attributes.retry_count;
  requester.rnr_retries_left = qp.attributes.rnr_retry;
}

// SQD may change how many READs a peer may have open; what is kept for replay is forgotten then,
// which is right since the send queues of both sides are drained.
void resize_replay(HcaState& hca, Qp& qp) {
  if (qp.responder.replay_limit == qp.attributes.max_dest_read_atomic) return;
  forget_responses(hca, qp);
  qp.responder.replay_limit = qp.attributes.max_dest_read_atomic;
  qp.responder.replay_next = 0;
}

void drain(HcaState& hca, Qp& qp) {
  if (is_reliable(qp.service) && waits_unasked(qp)) repeat_unasked(hca, qp);
  if (!qp.attributes.sqd_notify) return;
  if (is_send_drained(qp)) {
    raise_event(hca, qp, EventType::kSqDrained);
  } else {
    qp.sqd_notify_due = true;
  }
}

}  // namespace

bool is_send_drained(const Qp& qp) {
  return qp.requester.oldest_index == qp.requester.assigned_index;
}

bool may_leave_sqd(const Qp& qp, QpState to) {
  return is_send_drained(qp) || to == QpState::kErr || to == QpState::kReset;
}

void apply_attributes(HcaState& hca, Qp& qp, const QpAttributes& given, std::uint32_t mask,
                      Peer* peer) {
  QpAttributes& own = qp.attributes;
  if ((mask & kAccessFlags) != 0) own.access = qp.access = given.access;
  if ((mask & kPKeyIndex) != 0) own.pkey_index = given.pkey_index;
  if ((mask & kPort) != 0) own.port = given.port;
  if ((mask & kQKey) != 0) own.qkey = given.qkey;
  if ((mask & kPathMtu) != 0) own.path_mtu = qp.path_mtu = given.path_mtu;
  if ((mask & kTimeout) != 0) own.timeout = given.timeout;
  if ((mask & kRetryCount) != 0) own.retry_count = qp.requester.retries_left = given.retry_count;
  if ((mask & kRnrRetry) != 0) own.rnr_retry = qp.requester.rnr_retries_left = given.rnr_retry;
  if ((mask & kReceivePsn) != 0) own.receive_psn = given.receive_psn;
  if ((mask & kSendPsn) != 0) own.send_psn = given.send_psn;
  if ((mask & kMaxReadAtomic) != 0) own.max_read_atomic = given.max_read_atomic;
  if ((mask & kMaxDestReadAtomic) != 0) own.max_dest_read_atomic = given.max_dest_read_atomic;
  if ((mask & kMinRnrTimer) != 0) own.min_rnr_timer = given.min_rnr_timer;
  if ((mask & kDestinationQpn) != 0) own.destination_qpn = given.destination_qpn;
  // Said for one change to SQD: a later one without it wants no event.
  if ((mask & kState) != 0) own.sqd_notify = (mask & kEnableSqdNotify) != 0 && given.sqd_notify;
  if ((mask & kAddressVector) == 0) return;
  stop_sending(hca, qp);
  qp.ready_hook.unlink();  // of the link it had
  qp.requester.round_trip = {};
  own.path = given.path;
  own.link = qp.link = given.link;
  own.sgid_index = given.sgid_index;
  own.service_level = given.service_level;
  qp.peer = peer;
  if (qp.responder.owes_response) make_ready(hca, qp);
}

void enter_state(HcaState& hca, Instant now, Qp& qp, QpState to, std::uint32_t mask) {
  const QpState from = qp.state.load(std::memory_order_relaxed);
  switch (to) {
    case QpState::kReset:
      reset(hca, qp);
      return;
    case QpState::kErr:
      forget_responses(hca, qp);
      enter_error(hca, qp);
      return;
    case QpState::kInit:
      break;
    case QpState::kRtr:
      start_responder(qp);
      break;
    case QpState::kRts:
      if (from == QpState::kRtr) start_requester(qp);
      qp.sqd_notify_due = false;
      break;
    case QpState::kSqd:
      if (from == QpState::kSqd && (mask & kMaxDestReadAtomic) != 0) resize_replay(hca, qp);
      break;
    case QpState::kSqe:
      break;
  }
  qp.state.store(to, std::memory_order_release);
  if (to == QpState::kSqd && from == QpState::kRts) drain(hca, qp);
  if (to == QpState::kRts) {
    restart_timer(hca, now, qp);
    on_posted(hca, qp);
  }
}

void on_posted(HcaState& hca, Qp& qp) {
  const QpState state = qp.state.load(std::memory_order_relaxed);
  if (state == QpState::kErr) return flush(hca, qp);
  if (state == QpState::kSqe) return flush_send_queue(hca, qp);
  if (is_reliable(qp.service)) {
    make_ready(hca, qp);
  } else {
    make_unreliable_ready(hca, qp);
  }
}

void reset(HcaState& hca, Qp& qp) {
  qp.state.store(QpState::kReset, std::memory_order_release);
  stop_sending(hca, qp);
  forget_responses(hca, qp);
  hca.stash.forget(qp);
  qp.ready_hook.unlink();
  qp.unsettled_hook.unlink();
  qp.event_hook.unlink();
  qp.pending_events = 0;
  abandon_send_queue(qp);
  qp.requester = RcRequester{};
  // The shared receive request in hand will never complete.
  if (qp.srq != nullptr && qp.responder.receive != nullptr) {
    qp.srq->queue.released().fetch_add(1, std::memory_order_release);
  }
  if (qp.service == Service::kXrcTarget) leave_srq(qp);
  RcResponder fresh;
  fresh.replay = qp.responder.replay;
  qp.responder = fresh;
  qp.receive_next = 0;
  qp.sqd_notify_due = qp.communication_established = false;
  qp.last_wqe_reported = qp.loss_reported = false;
  qp.receive_queue.reset();
  qp.peer = nullptr;
}

}  // namespace uroce::transport
