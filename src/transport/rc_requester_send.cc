// SPDX-License-Identifier: BSD-2-Clause
// Requester generates requests (IBTA 9.7.3): from the work request at the sending position to one
// frame. A SEND or WRITE leaves as runs as long as link and window allow; a READ as one request, or
// as several where its answers must fit our receive window; an atomic as one packet.
#include <algorithm>

#include "transport/ack_request.h"
#include "transport/complete.h"
#include "transport/data_frame.h"
#include "transport/local_operation.h"
#include "transport/rc.h"
#include "transport/recovery.h"
#include "transport/retry.h"
#include "transport/window.h"
#include "wire/build.h"

namespace uroce::transport {
namespace {

// PSNs in flight stay far below half of the ring, or "before" would lose its meaning.
inline constexpr std::uint32_t kPsnWindow = 1U << 22;

// An atomic's answer has room, and an atomic write has just its word.
bool has_word(const SendWqe& wqe) {
  if (wqe.operation == SendOperation::kAtomicWrite) return wqe.length == sizeof(std::uint64_t);
  return !is_atomic(wqe.operation) || wqe.length >= sizeof(std::uint64_t);
}

// What is wrong with the request by itself.
WcStatus check_answered(const Qp& qp, const SendWqe& wqe) {
  if (qp.attributes.max_read_atomic == 0) return WcStatus::kLocalQpOperationError;
  const bool is_right = wqe.length <= kMessageBytesMax && has_word(wqe);
  return is_right ? WcStatus::kSuccess : WcStatus::kLocalLengthError;
}
WcStatus check(const Qp& qp, const SendWqe& wqe) {
  if (is_read_or_atomic(wqe.operation)) return check_answered(qp, wqe);
  return wqe.length <= kMessageBytesMax ? WcStatus::kSuccess : WcStatus::kLocalLengthError;
}

// It lies between two PSNs.
[[gnu::cold]] void take_up_local(RcRequester& requester, SendWqe& wqe) {
  wqe.status = WcStatus::kSuccess;
  wqe.is_carried_out = false;
  wqe.first_psn = requester.next_psn;
  wqe.last_psn = requester.next_psn - 1;
  ++requester.assigned_index;
}

// The request is taken up for the first time and gets its PSNs.
bool take_up(Qp& qp, SendWqe& wqe) {
  RcRequester& requester = qp.requester;
  if (is_local(wqe.operation)) {
    take_up_local(requester, wqe);
    return true;
  }
  if ((requester.next_psn - requester.oldest_unacked_psn.value()).value() >= kPsnWindow) {
    return false;
  }
  wqe.status = check(qp, wqe);
  const bool is_one_packet = is_word(wqe.operation) || wqe.status != WcStatus::kSuccess;
  const std::uint32_t packets = is_one_packet ? 1 : packets_in(wqe.length, qp.path_mtu);
  wqe.first_psn = requester.next_psn;
  wqe.last_psn = requester.next_psn + (packets - 1);
  requester.next_psn += packets;
  ++requester.assigned_index;
  return true;
}

// A local fault waits for the requests before it to complete.
[[gnu::cold]] bool hold_fault(HcaState& hca, Qp& qp, SendWqe& wqe, WcStatus status) {
  wqe.status = status;
  if (qp.requester.send_index == qp.requester.oldest_index) {
    fail_oldest(hca, qp, status);
  } else if (waits_unasked(qp)) {
    repeat_unasked(hca, qp);
  }
  return false;
}

bool wait_for_window(HcaState& hca, Qp& qp) {
  qp.requester.waiting_for_window = qp.requester.has_waited = true;
  qp.ready_hook.unlink();
  hca.links[qp.link].waiting.push_back(qp);
  return false;
}

// How many packets of `left` bytes fit the link and the window; 0: none now.
std::uint32_t packets_to_send(const HcaState& hca, const Qp& qp, std::uint64_t left) {
  const LinkFacts& facts = hca.links[qp.link].facts;
  const std::uint32_t mtu = qp.path_mtu;
  std::uint32_t wanted = 1;
  if (left > mtu) {
    wanted = std::min<std::uint32_t>(
        {packets_in(left, mtu), facts.max_run_packets, packets_within(facts.max_run_bytes, mtu)});
  }
  if (qp.requester.flight.is_limited()) wanted = std::min(wanted, flight_room(qp.requester));
  if (facts.peer_window_bytes == 0) return wanted;
  const std::uint32_t room = window_room(hca, qp);
  const auto last_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, mtu));
  if (wanted == 1) return window_cost(1, last_bytes) <= room ? 1 : 0;
  return std::min(wanted, room / window_cost(1, mtu));
}

inline TxFrame& build_data(Qp& qp, const SendWqe& wqe, const Slice& slice, bool ack_request,
                           TxBurst& burst) {
  TxFrame& frame = burst.next();
  frame.payload_bytes = slice.bytes;
  frame.packet_count = static_cast<std::uint16_t>(slice.packets);
  build_data_headers(frame, qp, wire::Service::kRc, wqe, slice, ack_request);
  return frame;
}

// The headers are RC's so far.
[[gnu::always_inline]] inline void address_request(TxFrame& frame, Qp& qp, const SendWqe& wqe,
                                                   FrameTag tag) {
  address_frame(frame, qp, tag);
  if (qp.service == Service::kXrcInitiator) [[unlikely]]
    wire::make_xrc(frame, {wqe.srq()});
}

// The frame is filled: it is sent from here on, and the sending position is behind it.
inline void commit(HcaState& hca, Instant now, Qp& qp, const SendWqe& wqe, TxFrame& frame,
                   TxBurst& burst, std::size_t pieces, std::uint32_t packets) {
  RcRequester& requester = qp.requester;
  // The wait for a window was not the peer's.
  const bool is_late = requester.has_waited && requester.send_psn == requester.oldest_unacked_psn;
  address_request(frame, qp, wqe,
                  {FrameTag::Kind::kRequest, requester.send_psn, requester.send_index});
  burst.commit(pieces);
  requester.send_psn += packets;
  requester.waiting_for_window = requester.has_waited = false;
  if (requester.send_psn == wqe.last_psn + 1) ++requester.send_index;
  if (is_late || !qp.ack_timer.is_running()) [[unlikely]]
    restart_timer(hca, now, qp);
}

bool send_data(HcaState& hca, Instant now, Qp& qp, SendWqe& wqe, TxBurst& burst) {
  const Psn psn = qp.requester.send_psn;
  const std::uint64_t left = wqe.length - offset_of(wqe.first_psn, psn, qp.path_mtu);
  const std::uint32_t packets = packets_to_send(hca, qp, left);
  // Room in the flight comes with the next acknowledgement.
  if (packets == 0) return flight_room(qp.requester) != 0 && wait_for_window(hca, qp);
  const Slice slice = make_slice(qp, wqe, psn, packets);
  const Gathered gathered = gather(hca, qp, wqe, slice.offset, slice.bytes, burst);
  if (gathered.is_fault) return hold_fault(hca, qp, wqe, WcStatus::kLocalProtectionError);

  const std::uint32_t cost = window_cost(packets, slice.bytes);
  const bool asks = wants_ack(hca, qp, wqe, packets, cost, slice.ends);
  TxFrame& frame = build_data(qp, wqe, slice, asks, burst);
  take_window(qp, cost);
  if (asks) on_answer_asked(now, qp, psn + (packets - 1));
  commit(hca, now, qp, wqe, frame, burst, gathered.pieces, packets);
  return true;
}

// The request that `psn`, which was sent, belongs to.
const SendWqe& find_request(const Qp& qp, Psn psn) {
  std::uint32_t index = qp.requester.oldest_index;
  const std::uint32_t base = qp.requester.oldest_unacked_psn.value();
  while ((qp.send_queue.at(index).last_psn - base).value() < (psn - base).value()) ++index;
  return qp.send_queue.at(index);
}

std::uint32_t read_piece_bytes(const Qp& qp, const SendWqe& wqe, Psn psn, std::uint32_t packets) {
  const std::uint64_t offset = offset_of(wqe.first_psn, psn, qp.path_mtu);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(wqe.length - offset, std::uint64_t{packets} * qp.path_mtu));
}

void build_read(TxFrame& frame, const Qp& qp, const SendWqe& wqe, Psn psn, std::uint32_t bytes) {
  build(
      frame,
      wire::Bth{.opcode = wire::Opcode::kRcReadRequest,
                .pkey = qp.pkey,
                .destination = qp.attributes.destination_qpn,
                .ack_request = true,
                .psn = psn},
      wire::Reth{wqe.remote_address + offset_of(wqe.first_psn, psn, qp.path_mtu), wqe.rkey, bytes});
}

// What is missing of a READ (read_gaps.h); our window has its share still.
[[gnu::cold]] void build_part(TxFrame& frame, HcaState& hca, const Qp& qp, const SendWqe& wqe,
                              Hole& hole) {
  build_read(frame, qp, wqe, hole.first, read_piece_bytes(qp, wqe, hole.first, hole.packets));
  hole.frontier = qp.requester.send_psn;
  ++hca.counters.selective_retransmissions;
}

// What is missing at the peer (recovery.h), of a SEND or WRITE; it has its share of the window
// still. False: it cannot be sent.
[[gnu::cold]] bool build_missing(HcaState& hca, Qp& qp, const SendWqe& wqe, Hole& hole,
                                 TxBurst& burst, std::size_t& pieces) {
  if (is_read_or_atomic(wqe.operation)) return false;
  const LinkFacts& facts = hca.links[qp.link].facts;
  const std::uint32_t left = (wqe.last_psn - hole.first.value()).value() + 1;
  hole.packets = std::min<std::uint32_t>({hole.packets, left, facts.max_run_packets,
                                          packets_within(facts.max_run_bytes, qp.path_mtu)});
  const Slice slice = make_slice(qp, wqe, hole.first, hole.packets);
  const Gathered gathered = gather_seldom(hca, qp, wqe, slice.offset, slice.bytes, burst);
  if (gathered.is_fault) return false;
  (void)build_data(qp, wqe, slice, true, burst);
  pieces = gathered.pieces;
  return true;
}

// Once more what was lost. False: it cannot be sent, and is no hole any more.
[[gnu::cold]] bool send_missing(HcaState& hca, Instant now, Qp& qp, TxBurst& burst) {
  Hole& hole = next_due_hole(qp);
  const SendWqe& wqe = find_request(qp, hole.first);
  std::size_t pieces = 0;
  if (qp.requester.recovery.is_reading) {
    build_part(burst.next(), hca, qp, wqe, hole);
  } else if (!build_missing(hca, qp, wqe, hole, burst, pieces)) {
    drop_hole(qp, hole);
    return false;
  }
  address_request(burst.filled(), qp, wqe, {FrameTag::Kind::kResend, hole.first, 0});
  burst.commit(pieces);
  on_sent_again(now, qp, hole);
  // What was refused is counted already: counters never fall.
  const auto counted = std::min<std::uint64_t>(hca.counted_and_refused, hole.packets);
  hca.counted_and_refused -= counted;
  hca.counters.retransmitted_packets += hole.packets - counted;
  return true;
}

void push_read_end(RcRequester& requester, Psn last) {
  requester.read_ends[(requester.reads_oldest + requester.reads_outstanding++) % kReadAtomicMax] =
      last;
}

bool send_read(HcaState& hca, Instant now, Qp& qp, SendWqe& wqe, TxBurst& burst) {
  RcRequester& requester = qp.requester;
  const Psn psn = requester.send_psn;
  const std::uint32_t packets = read_piece(hca, qp, wqe, psn);
  const std::uint32_t bytes = read_piece_bytes(qp, wqe, psn, packets);
  const LinkState& link = hca.links[qp.link];
  const std::uint32_t cost = window_cost(packets, bytes);
  if (link.facts.peer_window_bytes != 0 && link.reads_in_flight != 0 &&
      link.reads_in_flight + cost > link.facts.peer_window_bytes) {
    return wait_for_window(hca, qp);
  }
  TxFrame& frame = burst.next();
  build_read(frame, qp, wqe, psn, bytes);
  push_read_end(requester, psn + (packets - 1));
  on_answer_asked(now, qp, psn);
  if (link.facts.peer_window_bytes != 0) take_read_window(hca, qp, cost);
  commit(hca, now, qp, wqe, frame, burst, 0, packets);
  return true;
}

bool send_atomic(HcaState& hca, Instant now, Qp& qp, SendWqe& wqe, TxBurst& burst) {
  RcRequester& requester = qp.requester;
  const bool is_swap = wqe.operation == SendOperation::kCompareSwap;
  TxFrame& frame = burst.next();
  build(frame,
        wire::Bth{.opcode = is_swap ? wire::Opcode::kRcCompareSwap : wire::Opcode::kRcFetchAdd,
                  .pkey = qp.pkey,
                  .destination = qp.attributes.destination_qpn,
                  .ack_request = true,
                  .psn = requester.send_psn},
        wire::AtomicEth{.virtual_address = wqe.remote_address,
                        .rkey = wqe.rkey,
                        .swap_or_add = is_swap ? wqe.swap : wqe.compare_add,
                        .compare = is_swap ? wqe.compare_add : 0});
  push_read_end(requester, requester.send_psn);
  on_answer_asked(now, qp, requester.send_psn);
  commit(hca, now, qp, wqe, frame, burst, 0, 1);
  return true;
}

bool send_atomic_write(HcaState& hca, Instant now, Qp& qp, SendWqe& wqe, TxBurst& burst) {
  RcRequester& requester = qp.requester;
  const Gathered gathered = gather_seldom(hca, qp, wqe, 0, wqe.length, burst);
  if (gathered.is_fault) return hold_fault(hca, qp, wqe, WcStatus::kLocalProtectionError);
  TxFrame& frame = burst.next();
  frame.payload_bytes = wqe.length;
  build(frame,
        wire::Bth{.opcode = wire::Opcode::kRcAtomicWrite,
                  .pkey = qp.pkey,
                  .destination = qp.attributes.destination_qpn,
                  .ack_request = true,
                  .psn = requester.send_psn},
        wire::Reth{wqe.remote_address, wqe.rkey, wqe.length});
  push_read_end(requester, requester.send_psn);
  on_answer_asked(now, qp, requester.send_psn);
  commit(hca, now, qp, wqe, frame, burst, gathered.pieces, 1);
  return true;
}

// One that was carried out before is only stepped over. False: it has to wait, or has failed.
[[gnu::cold]] bool pass_local(HcaState& hca, Qp& qp, SendWqe& wqe) {
  if (!wqe.is_carried_out) {
    if (must_wait(qp, wqe)) return false;
    const WcStatus status = carry_out(hca, qp, wqe);
    if (status != WcStatus::kSuccess) return hold_fault(hca, qp, wqe, status);
    wqe.is_carried_out = true;
  }
  ++qp.requester.send_index;
  retire_local(hca, qp);
  report_drained(hca, qp);
  return true;
}

// man ibv_post_send: a fenced request begins when all READs and atomics before it are complete.
bool is_held_back(const RcRequester& requester, const SendWqe& wqe) {
  return (wqe.flags & send_flag::kFence) != 0 && requester.send_psn == wqe.first_psn &&
         requester.reads_outstanding != 0;
}

bool send_answered(HcaState& hca, Instant now, Qp& qp, SendWqe& wqe, TxBurst& burst) {
  const RcRequester& requester = qp.requester;
  if (requester.reads_outstanding >= qp.attributes.max_read_atomic) return false;
  if (requester.flight.is_one() && requester.send_psn != requester.oldest_unacked_psn) return false;
  if (wqe.operation == SendOperation::kRead) return send_read(hca, now, qp, wqe, burst);
  return is_atomic(wqe.operation) ? send_atomic(hca, now, qp, wqe, burst)
                                  : send_atomic_write(hca, now, qp, wqe, burst);
}

}  // namespace

bool next_request(HcaState& hca, Instant now, Qp& qp, TxBurst& burst) {
  RcRequester& requester = qp.requester;
  do {
    if (requester.recovery.due_count != 0) [[unlikely]] {
      if (send_missing(hca, now, qp, burst)) return true;
      continue;
    }
    SendWqe& wqe = qp.send_queue.at(requester.send_index);
    if (requester.send_index == requester.assigned_index && !take_up(qp, wqe)) return false;
    if (wqe.status != WcStatus::kSuccess) return hold_fault(hca, qp, wqe, wqe.status);
    if (is_local(wqe.operation)) [[unlikely]] {
      if (!pass_local(hca, qp, wqe)) return false;
      continue;
    }
    if (is_held_back(requester, wqe)) return false;
    return is_read_or_atomic(wqe.operation) ? send_answered(hca, now, qp, wqe, burst)
                                            : send_data(hca, now, qp, wqe, burst);
  } while (has_request(qp));
  return false;
}

void unsend_request(HcaState& hca, Qp& qp, FrameTag tag) {
  // A later frame of the burst may have ended the QP: its work is flushed, nothing is sent again.
  if (qp.state.load(std::memory_order_relaxed) == QpState::kErr) return;
  RcRequester& requester = qp.requester;
  const SendWqe& wqe = qp.send_queue.at(tag.index);
  const auto packets = static_cast<std::uint32_t>(distance(tag.psn, requester.send_psn));
  requester.send_index = tag.index;
  requester.send_psn = tag.psn;
  if (!is_read_or_atomic(wqe.operation)) {
    release_window(hca, qp, window_cost(qp, wqe, tag.psn, packets));
    return;
  }
  --requester.reads_outstanding;
  if (wqe.operation == SendOperation::kRead) {
    release_read_window(hca, qp, window_cost(packets, read_piece_bytes(qp, wqe, tag.psn, packets)));
  }
}

}  // namespace uroce::transport
