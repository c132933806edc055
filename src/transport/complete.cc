// SPDX-License-Identifier: BSD-2-Clause
#include "transport/complete.h"

#include "transport/retry.h"

namespace uroce::transport {
namespace {

constexpr WcOpcode opcode_of(SendOperation operation) {
  switch (operation) {
    case SendOperation::kSend:
    case SendOperation::kSendWithImmediate:
    case SendOperation::kSendWithInvalidate:
      return WcOpcode::kSend;
    case SendOperation::kWrite:
    case SendOperation::kWriteWithImmediate:
      return WcOpcode::kRdmaWrite;
    case SendOperation::kRead:
      return WcOpcode::kRdmaRead;
    case SendOperation::kCompareSwap:
      return WcOpcode::kCompareSwap;
    case SendOperation::kFetchAdd:
      return WcOpcode::kFetchAdd;
    case SendOperation::kBindWindow:
      return WcOpcode::kBindWindow;
    case SendOperation::kLocalInvalidate:
      return WcOpcode::kLocalInvalidate;
    case SendOperation::kAtomicWrite:
      return WcOpcode::kAtomicWrite;
  }
  return WcOpcode::kSend;
}

// An address handle's path is not needed any more by this request.
void release_target(const Qp& qp, const SendWqe& wqe) {
  if (qp.service != Service::kUd) return;
  if (AddressPath* path = wqe.target().path; path != nullptr) {
    path->users.fetch_sub(1, std::memory_order_release);
  }
}

// IBTA 10.6.3.1, C10-88: a CQ that overran is in error, and a QP that lost a completion with it.
[[gnu::cold]] void on_lost_completion(HcaState& hca, CompletionQueue& cq, Qp& qp) {
  if (!cq.has_overrun()) return;
  if (!cq.overrun_reported) {
    cq.overrun_reported = true;
    cq.pending_events |= 1U << static_cast<unsigned>(EventType::kCqError);
    hca.cq_events.push_back(cq);
  }
  if (qp.loss_reported) return;
  qp.loss_reported = true;
  raise_event(hca, qp, EventType::kQpFatal);
  enter_error(hca, qp);
}

// Where to write a completion of `qp`; null: its CQ has no room for it.
inline Cqe* stage(HcaState& hca, CompletionQueue& cq, Qp& qp, WcStatus status, bool solicited) {
  hca.dirty.push_back(cq);
  Cqe* const entry = cq.stage(solicited || status != WcStatus::kSuccess);
  if (entry == nullptr) [[unlikely]]
    on_lost_completion(hca, cq, qp);
  return entry;
}

}  // namespace

void complete_send(HcaState& hca, Qp& qp, WcStatus status, std::uint32_t byte_count) {
  RcRequester& requester = qp.requester;
  const SendWqe& wqe = qp.send_queue.at(requester.oldest_index);
  release_target(qp, wqe);
  ++requester.oldest_index;
  ++requester.unreleased;
  if (!qp.signal_all && !wqe.is_signaled() && status == WcStatus::kSuccess) return;
  const std::uint32_t release_count = requester.unreleased;
  requester.unreleased = 0;
  Cqe* const entry = stage(hca, *qp.send_cq, qp, status, false);
  std::atomic<std::uint32_t>& released = qp.send_queue.released();
  if (entry == nullptr) {  // nobody will poll it
    released.fetch_add(release_count, std::memory_order_release);
    return;
  }
  entry->wr_id = wqe.wr_id;
  entry->released = &released;
  entry->release_count = release_count;
  entry->byte_count = byte_count;
  entry->immediate = 0;
  entry->qpn = qp.number;
  entry->source_qpn = {};
  entry->vendor_error = 0;
  entry->status = status;
  entry->opcode = opcode_of(wqe.operation);
  entry->flags = 0;
  entry->service_level = 0;
}

void complete_receive(HcaState& hca, Qp& qp, const Received& received) {
  const std::uint64_t wr_id = qp.responder.receive->wr_id;
  qp.responder.receive = nullptr;
  Cqe* const entry = stage(hca, *qp.receive_cq, qp, received.status, received.solicited);
  std::atomic<std::uint32_t>& released =
      qp.srq != nullptr ? qp.srq->queue.released() : qp.receive_queue.released();
  if (entry == nullptr) {
    released.fetch_add(1, std::memory_order_release);
    return;
  }
  entry->wr_id = wr_id;
  entry->released = &released;
  entry->release_count = 1;
  entry->byte_count = received.byte_count;
  entry->immediate = received.immediate;
  entry->qpn = qp.number;
  entry->source_qpn = qp.service == Service::kUd ? received.source : qp.attributes.destination_qpn;
  entry->vendor_error = 0;
  entry->status = received.status;
  entry->opcode = received.opcode;
  entry->flags = received.flags;
  entry->service_level = received.service_level;
}

void report_drained(HcaState& hca, Qp& qp) {
  if (!qp.sqd_notify_due || qp.requester.oldest_index != qp.requester.assigned_index) return;
  qp.sqd_notify_due = false;
  raise_event(hca, qp, EventType::kSqDrained);
}

void raise_event(HcaState& hca, Qp& qp, EventType type) {
  qp.pending_events |= 1U << static_cast<unsigned>(type);
  hca.qp_events.push_back(qp);
}

void check_srq_limit(HcaState& hca, Srq& srq) {
  if (srq.limit == 0 || srq.queue.posted() - srq.next >= srq.limit) return;
  srq.limit = 0;
  srq.pending_events |= 1U << static_cast<unsigned>(EventType::kSrqLimitReached);
  hca.srq_events.push_back(srq);
}

void enter_error(HcaState& hca, Qp& qp) {
  if (qp.state.load(std::memory_order_relaxed) == QpState::kErr) return;
  // Before flush() looks at what was posted; see WorkQueue::post_before_look.
  qp.state.store(QpState::kErr, std::memory_order_seq_cst);
  stop_sending(hca, qp);
  hca.stash.forget(qp);
  flush(hca, qp);
}

void enter_send_error(HcaState& hca, Qp& qp) {
  if (qp.state.load(std::memory_order_relaxed) == QpState::kErr) return;
  // Before what was posted is looked at; see WorkQueue::post_before_look.
  qp.state.store(QpState::kSqe, std::memory_order_seq_cst);
  flush_send_queue(hca, qp);
}

void flush_send_queue(HcaState& hca, Qp& qp) {
  RcRequester& requester = qp.requester;
  while (requester.oldest_index != qp.send_queue.posted()) {
    complete_send(hca, qp, WcStatus::kFlushed, 0);
  }
  requester.send_index = requester.assigned_index = requester.oldest_index;
}

void abandon_send_queue(Qp& qp) {
  if (qp.service == Service::kUd) {
    for (std::uint32_t i = qp.requester.oldest_index; i != qp.send_queue.posted(); ++i) {
      release_target(qp, qp.send_queue.at(i));
    }
  }
  qp.send_queue.reset();
}

void flush(HcaState& hca, Qp& qp) {
  flush_send_queue(hca, qp);
  const Received flushed{.status = WcStatus::kFlushed};
  if (qp.responder.receive != nullptr) complete_receive(hca, qp, flushed);
  if (qp.service == Service::kXrcTarget) return;  // its queues are not its own
  if (qp.srq != nullptr) {
    // o11-5.2.5: this QP takes no more from its SRQ.
    if (!qp.last_wqe_reported) raise_event(hca, qp, EventType::kQpLastWqeReached);
    qp.last_wqe_reported = true;
    return;
  }
  while (qp.receive_next != qp.receive_queue.posted()) {
    qp.responder.receive = &qp.receive_queue.at(qp.receive_next++);
    complete_receive(hca, qp, flushed);
  }
}

void fail_oldest(HcaState& hca, Qp& qp, WcStatus status) {
  complete_send(hca, qp, status, 0);
  if (is_reliable(qp.service)) {
    enter_error(hca, qp);
  } else {
    enter_send_error(hca, qp);
  }
}

}  // namespace uroce::transport
