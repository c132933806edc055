// SPDX-License-Identifier: BSD-2-Clause
#include "sim/queue_pair.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace uroce::sim {

using namespace transport;

namespace {

std::uint32_t send_stride(const QueuePairOptions& options) {
  const auto sge_bytes = static_cast<std::uint32_t>(sizeof(memory::Sge)) * options.sge_max;
  const std::uint32_t extra = std::max(sge_bytes, options.inline_max);
  return (static_cast<std::uint32_t>(sizeof(SendWqe)) + extra + 15) & ~15U;
}

std::uint32_t receive_stride(const QueuePairOptions& options) {
  return static_cast<std::uint32_t>(sizeof(RecvWqe) + sizeof(memory::Sge) * options.sge_max);
}

}  // namespace

QueuePair::QueuePair(Node& node, const QueuePairOptions& options, CompletionQueue& send_cq,
                     CompletionQueue& receive_cq, Srq* srq)
    : node_(node),
      options_(options),
      send_memory_(std::size_t{SendQueue::ring_slots(options.capacity)} * send_stride(options)),
      receive_memory_(std::size_t{RecvQueue::ring_slots(options.capacity)} *
                      receive_stride(options)),
      srq_copy_(receive_stride(options)),
      replay_(kReplayMax) {
  QpInit init;
  init.number = node.allocate_qpn();
  init.service = options.service;
  init.datagram_bytes = options.path_mtu;
  init.xrcd = options.xrcd;
  init.pd = {1};
  init.send_cq = &send_cq;
  init.receive_cq = &receive_cq;
  init.srq = srq;
  init.signal_all = options.signal_all;
  init.max_inline = options.inline_max;
  init.send_memory = send_memory_;
  init.send_capacity = options.capacity;
  init.send_stride = send_stride(options);
  init.receive_memory = receive_memory_;
  init.receive_capacity = options.capacity;
  init.receive_stride = receive_stride(options);
  init.srq_copy = static_cast<RecvWqe*>(static_cast<void*>(srq_copy_.data()));
  init.replay = replay_;
  node.hca().create_qp(qp_, init);
}

QueuePair::~QueuePair() {
  node_.hca().destroy_qp(qp_);
  purge_completions();
}

void QueuePair::modify(Instant now, const QpAttributes& attributes, std::uint32_t mask) {
  UROCE_CHECK(node_.hca().modify_qp(now, qp_, attributes, mask,
                                    node_.peer(options_.link, destination_)) == 0);
  node_.request_turn(now);
}

void QueuePair::to_init(Instant now, QpAttributes& a) {
  using namespace qp_attribute;
  a.state = QpState::kInit;
  a.access = options_.access;
  a.qkey = options_.qkey;
  const std::uint32_t right = options_.service == Service::kUd ? kQKey : kAccessFlags;
  modify(now, a, kState | kPKeyIndex | kPort | right);
}

void QueuePair::to_rtr(Instant now, QpAttributes& a) {
  using namespace qp_attribute;
  a.state = QpState::kRtr;
  if (options_.service == Service::kUd) return modify(now, a, kState);
  a.path = node_.path_to(destination_);
  a.link = options_.link;
  a.path_mtu = options_.path_mtu;
  a.max_dest_read_atomic = options_.max_dest_read_atomic;
  a.min_rnr_timer = options_.min_rnr_timer;
  const bool responds = options_.service == Service::kRc || options_.service == Service::kXrcTarget;
  modify(now, a,
         kState | kAddressVector | kPathMtu | kDestinationQpn | kReceivePsn |
             (responds ? kMaxDestReadAtomic | kMinRnrTimer : 0U));
}

void QueuePair::to_rts(Instant now, QpAttributes& a) {
  using namespace qp_attribute;
  a.state = QpState::kRts;
  a.timeout = options_.timeout;
  a.retry_count = options_.retry_count;
  a.rnr_retry = options_.rnr_retry;
  a.max_read_atomic = options_.max_read_atomic;
  const bool requests =
      options_.service == Service::kRc || options_.service == Service::kXrcInitiator;
  modify(now, a,
         kState | kSendPsn | (is_reliable(options_.service) ? kTimeout : 0U) |
             (requests ? kRetryCount | kRnrRetry | kMaxReadAtomic : 0U));
}

void QueuePair::connect(Instant now, unsigned node, Qpn destination, Psn receive_psn,
                        Psn send_psn) {
  destination_ = node;
  QpAttributes a;
  a.destination_qpn = destination;
  a.receive_psn = receive_psn;
  a.send_psn = send_psn;
  to_init(now, a);
  to_rtr(now, a);
  to_rts(now, a);
}

void QueuePair::to_state(Instant now, QpState state) {
  QpAttributes a;
  a.state = state;
  modify(now, a, qp_attribute::kState);
}

void QueuePair::purge_completions() {
  std::atomic<std::uint32_t>* const shared =
      qp_.srq == nullptr ? nullptr : &qp_.srq->queue.released();
  qp_.send_cq->purge(qp_.number, shared);
  // A target of XRC has one only while it serves a receive queue.
  if (qp_.receive_cq != nullptr) qp_.receive_cq->purge(qp_.number, shared);
}

SendWqe& QueuePair::next_send(const SendRequest& request) {
  SendQueue& queue = qp_.send_queue;
  UROCE_CHECK(queue.free_slots() != 0);
  SendWqe& wqe = queue.at(queue.next_post());
  wqe = SendWqe{};
  wqe.wr_id = request.wr_id;
  wqe.operation = request.operation;
  wqe.remote_address = request.remote_address;
  wqe.rkey = request.rkey;
  wqe.immediate = request.immediate;
  wqe.compare_add = request.compare_add;
  wqe.swap = request.swap;
  wqe.flags = request.flags;
  if (request.operation == SendOperation::kBindWindow) wqe.set_window_part(request.part);
  if (request.target) {
    wqe.set_target(*request.target);
    ++request.target->path->users;
  }
  if (request.srq) wqe.set_srq(*request.srq);
  return wqe;
}

void QueuePair::post_send(const SendRequest& request, std::span<const memory::Sge> sges) {
  SendWqe& wqe = next_send(request);
  wqe.sge_count = static_cast<std::uint16_t>(sges.size());
  wqe.length = static_cast<std::uint32_t>(memory::total_bytes(sges));
  std::copy(sges.begin(), sges.end(), wqe.sges());
  qp_.send_queue.post(1);
  node_.ring(qp_);
}

void QueuePair::post_inline(const SendRequest& request, ConstBytes data) {
  SendWqe& wqe = next_send(request);
  wqe.flags |= send_flag::kInline;
  wqe.length = static_cast<std::uint32_t>(data.size());
  std::copy(data.begin(), data.end(), wqe.inline_data());
  qp_.send_queue.post(1);
  node_.ring(qp_);
}

void QueuePair::post_receive(std::uint64_t wr_id, std::span<const memory::Sge> sges) {
  sim::post_receive(qp_.receive_queue, wr_id, sges);
  if (state() == QpState::kErr) node_.ring(qp_);
}

void post_receive(RecvQueue& queue, std::uint64_t wr_id, std::span<const memory::Sge> sges) {
  UROCE_CHECK(queue.free_slots() != 0);
  RecvWqe& wqe = queue.at(queue.next_post());
  wqe.wr_id = wr_id;
  wqe.sge_count = static_cast<std::uint32_t>(sges.size());
  wqe.length = static_cast<std::uint32_t>(memory::total_bytes(sges));
  std::copy(sges.begin(), sges.end(), wqe.sges());
  queue.post(1);
}

}  // namespace uroce::sim
