// SPDX-License-Identifier: BSD-2-Clause
// Requester receives responses (IBTA 9.7.5.1): acknowledgements retire work requests, READ
// responses and atomic results land in memory, NAKs send the requester back or end it.
//
// A response is for a PSN in [oldest_unacked_psn, next_psn); others are stale and ignored. Whatever
// it is, it acknowledges everything before its PSN, except that a READ or atomic in between whose
// own answer has not come was lost: an implied NAK (IBTA 9.7.5.1.4).
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "memory/dma.h"
#include "memory/sge_cursor.h"
#include "transport/complete.h"
#include "transport/local_operation.h"
#include "transport/rc.h"
#include "transport/read_gaps.h"
#include "transport/recovery.h"
#include "transport/retry.h"
#include "transport/segment.h"
#include "transport/window.h"

namespace uroce::transport {
namespace {

using memory::Access;
using wire::Kind;
using wire::SyndromeKind;

inline constexpr std::size_t kPieces = 64;

// Is `psn` one that we sent and that is not acknowledged yet? (Serial arithmetic does not do: one
// message may span half of the ring.)
bool is_outstanding(const RcRequester& requester, Psn psn) {
  const std::uint32_t base = requester.oldest_unacked_psn.value();
  return (psn - base).value() < (requester.next_psn - base).value();
}

// ... and since the last rewind?
bool is_on_its_way(const RcRequester& requester, Psn psn) {
  const std::uint32_t base = requester.oldest_unacked_psn.value();
  return (psn - base).value() < (requester.send_psn - base).value();
}

// After an acknowledgement of what a rewind wanted to send again.
void catch_up(RcRequester& requester) {
  const bool is_behind =
      static_cast<std::int32_t>(requester.send_index - requester.oldest_index) < 0 ||
      (requester.send_index == requester.oldest_index &&
       is_before(requester.send_psn, requester.oldest_unacked_psn));
  if (!is_behind) return;
  requester.send_index = requester.oldest_index;
  requester.send_psn = requester.oldest_unacked_psn;
}

void finish_oldest(HcaState& hca, Qp& qp, std::uint32_t byte_count) {
  complete_send(hca, qp, WcStatus::kSuccess, byte_count);
  retire_local(hca, qp);
}

enum class Acknowledged { kAll, kGap };

// Everything through `psn` has arrived. kGap: but for a READ or atomic without an answer.
Acknowledged ack_through(HcaState& hca, Instant now, Qp& qp, Psn psn) {
  RcRequester& requester = qp.requester;
  const Psn before = requester.oldest_unacked_psn;
  Acknowledged result = Acknowledged::kAll;
  while (is_outstanding(requester, psn) && requester.oldest_index != requester.assigned_index) {
    const SendWqe& wqe = qp.send_queue.at(requester.oldest_index);
    if (is_read_or_atomic(wqe.operation)) {
      result = Acknowledged::kGap;
      break;
    }
    const std::uint32_t base = requester.oldest_unacked_psn.value();
    const std::uint32_t left = (wqe.last_psn - base).value() + 1;
    const std::uint32_t acked = std::min(left, (psn - base).value() + 1);
    if (qp.peer != nullptr) {
      release_window(hca, qp, window_cost(qp, wqe, requester.oldest_unacked_psn, acked));
    }
    requester.oldest_unacked_psn += acked;
    if (acked == left) finish_oldest(hca, qp, wqe.length);
    if (qp.state.load(std::memory_order_relaxed) == QpState::kErr) return Acknowledged::kAll;
  }
  if (requester.oldest_unacked_psn != before) {
    catch_up(requester);
    on_progress(hca, now, qp);
  }
  return result;
}

// After progress: a local fault whose turn has come, a drained send queue, more to send.
void go_on(HcaState& hca, Qp& qp) {
  RcRequester& requester = qp.requester;
  if (requester.oldest_index != requester.assigned_index) {
    const SendWqe& oldest = qp.send_queue.at(requester.oldest_index);
    if (oldest.status != WcStatus::kSuccess && requester.send_index == requester.oldest_index) {
      fail_oldest(hca, qp, oldest.status);
      return;
    }
  }
  report_drained(hca, qp);
  if (requester.send_index != qp.send_queue.posted()) make_ready(hca, qp);
}

// A READ or atomic before `psn` has not been answered, though something behind it was: it was lost.
// While READs before that are read on, this waits, or what has come of them would be lost again.
[[gnu::cold]] void on_implied_nak(HcaState& hca, Instant now, Qp& qp, Psn psn,
                                  Recovery::Told told = Recovery::Told::kAck) {
  Recovery& recovery = qp.requester.recovery;
  if (recovery.is_reading) {
    recovery.told = told;
    recovery.told_psn = psn;
    return;
  }
  ++hca.counters.implied_naks;
  on_sequence_nak(hca, now, qp);
}

// An AETH says that `psn` was refused; everything before it was taken.
void on_nak(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  const wire::Syndrome syndrome = view.aeth.syndrome;
  if (!syndrome.is_known()) {
    ++hca.counters.rx_stale_response;
    return;
  }
  const bool is_rnr = syndrome.kind() == SyndromeKind::kRnrNak;
  const bool is_gap = !is_rnr && syndrome.nak_code() == wire::NakCode::kPsnSequence;
  ++(is_rnr ? hca.counters.rnr_naks_received : hca.counters.naks_received);
  if (is_gap) ++hca.counters.sequence_naks_received;
  const Psn psn = view.bth.psn;
  if (psn != qp.requester.oldest_unacked_psn &&
      ack_through(hca, now, qp, psn - 1) == Acknowledged::kGap) {
    return on_implied_nak(hca, now, qp, psn, Recovery::Told::kSequenceNak);
  }
  if (qp.state.load(std::memory_order_relaxed) == QpState::kErr) return;
  if (is_rnr) {
    on_rnr_nak(hca, now, qp, syndrome.rnr_timer());
  } else if (is_gap) {
    on_sequence_nak(hca, now, qp);
  } else {
    fail_oldest(hca, qp, status_of(syndrome.nak_code()));
  }
}

// They are finished.
[[gnu::cold]] void hear_what_was_told(HcaState& hca, Instant now, Qp& qp) {
  Recovery& recovery = qp.requester.recovery;
  const auto told = std::exchange(recovery.told, Recovery::Told::kNothing);
  if (told == Recovery::Told::kNothing || !is_outstanding(qp.requester, recovery.told_psn)) return;
  const bool is_nak = told == Recovery::Told::kSequenceNak;
  const Psn last = is_nak ? recovery.told_psn - 1 : recovery.told_psn;
  const bool is_gap = last + 1 != qp.requester.oldest_unacked_psn &&
                      ack_through(hca, now, qp, last) == Acknowledged::kGap;
  if (qp.state.load(std::memory_order_relaxed) == QpState::kErr) return;
  if (is_gap || is_nak) on_sequence_nak(hca, now, qp);
}

void on_acknowledge(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  if (!view.aeth.syndrome.is_ack()) {
    on_nak(hca, now, qp, view);
  } else if (ack_through(hca, now, qp, view.bth.psn) == Acknowledged::kGap) {
    on_implied_nak(hca, now, qp, view.bth.psn);
  }
}

// A READ response comes before others, which are lost. True: it can be kept, and the gap is seen
// to.
[[gnu::cold]] bool reads_on(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  const Psn psn = view.bth.psn;
  if (view.opcode->kind != Kind::kReadResponse || !is_on_its_way(qp.requester, psn) ||
      read_at(qp, psn) == nullptr || !on_read_gap(hca, now, qp)) {
    return false;
  }
  ++hca.counters.implied_naks;
  return true;
}

// The work request that a data-bearing response answers, if it is the next one awaited. What it
// acknowledges on the way is retired.
const SendWqe* awaited(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  RcRequester& requester = qp.requester;
  const Psn psn = view.bth.psn;
  if (psn != requester.oldest_unacked_psn) {
    const Acknowledged acknowledged = ack_through(hca, now, qp, psn - 1);
    if (acknowledged == Acknowledged::kGap && !reads_on(hca, now, qp, view)) {
      on_implied_nak(hca, now, qp, psn);
    }
    if (psn != requester.oldest_unacked_psn) return nullptr;
  }
  if (qp.state.load(std::memory_order_relaxed) == QpState::kErr) return nullptr;
  // Nothing was asked for since the last rewind: an answer to an earlier try.
  if (requester.reads_outstanding == 0) return nullptr;
  const SendWqe& wqe = qp.send_queue.at(requester.oldest_index);
  return is_read_or_atomic(wqe.operation) ? &wqe : nullptr;
}

bool place(HcaState& hca, Qp& qp, const SendWqe& wqe, std::uint64_t offset, ConstBytes data) {
  std::array<Bytes, kPieces> pieces;  // NOLINT: filled by take
  memory::SgeCursor cursor({wqe.sges(), wqe.sge_count});
  cursor.seek(offset);
  const auto taken =
      cursor.take(data.size(), hca.regions, qp.pd, Access::kLocalWrite, std::span<Bytes>(pieces));
  if (taken.fault != memory::MemoryFault::kNone || taken.bytes != data.size()) return false;
  memory::scatter(data, {pieces.data(), taken.pieces});
  return true;
}

void pop_read(RcRequester& requester) {
  requester.reads_oldest = (requester.reads_oldest + 1) % kReadAtomicMax;
  --requester.reads_outstanding;
}

// As Linux's rxe answers an atomic write: a READ's answer of no bytes.
void on_atomic_written(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  if (view.opcode->place != wire::Place::kOnly || !view.payload.empty()) {
    fail_oldest(hca, qp, WcStatus::kBadResponse);
    return;
  }
  qp.requester.oldest_unacked_psn = view.bth.psn + 1;
  pop_read(qp.requester);
  finish_oldest(hca, qp, sizeof(std::uint64_t));
  catch_up(qp.requester);
  on_progress(hca, now, qp);
}

// What has come without a gap is read.
[[gnu::cold]] void advance_reading(HcaState& hca, Instant now, Qp& qp) {
  RcRequester& requester = qp.requester;
  const Psn oldest = oldest_missing(qp);
  if (oldest == requester.oldest_unacked_psn) return;
  requester.oldest_unacked_psn = oldest;
  while (requester.reads_outstanding != 0 &&
         is_before(requester.read_ends[requester.reads_oldest], oldest)) {
    pop_read(requester);
  }
  while (requester.oldest_index != requester.assigned_index) {
    const SendWqe& wqe = qp.send_queue.at(requester.oldest_index);
    if (wqe.operation != SendOperation::kRead || !is_before(wqe.last_psn, oldest)) break;
    finish_oldest(hca, qp, wqe.length);
  }
  requester.recovery.is_reading = requester.recovery.hole_count != 0;
  on_progress(hca, now, qp);
  if (!requester.recovery.is_reading) hear_what_was_told(hca, now, qp);
}

// The oldest request fails; a later one is asked for again, and fails when its turn has come.
[[gnu::cold]] void spoil(HcaState& hca, Qp& qp, const SendWqe& wqe, WcStatus status) {
  ++hca.counters.rx_stale_response;
  if (&wqe == &qp.send_queue.at(qp.requester.oldest_index)) fail_oldest(hca, qp, status);
}

[[gnu::cold]] void on_read_among_gaps(HcaState& hca, Instant now, Qp& qp,
                                      const wire::PacketView& view) {
  const Psn first = view.bth.psn;
  if (!is_on_its_way(qp.requester, first)) {
    ++hca.counters.rx_stale_response;
    return;
  }
  const SendWqe* const wqe = read_at(qp, first);
  if (wqe == nullptr) return on_implied_nak(hca, now, qp, first);
  const std::uint32_t left = read_piece(hca, qp, *wqe, first);
  const std::uint64_t offset = offset_of(wqe->first_psn, first, qp.path_mtu);
  const std::uint64_t expected_bytes =
      std::min<std::uint64_t>(wqe->length - offset, std::uint64_t{view.packet_count} * qp.path_mtu);
  const bool is_cut = view.packet_count == left && !view.opcode->ends();
  if (view.packet_count > left || is_cut || view.payload.size() != expected_bytes) {
    return spoil(hca, qp, *wqe, WcStatus::kBadResponse);
  }
  const std::uint32_t packets = missing_packets(hca, qp, first, view.packet_count);
  if (packets == 0) {
    ++hca.counters.rx_stale_response;
    // There was no room to note what is missing before it: once the holes are filled.
    if (!is_before(first, qp.requester.recovery.read_frontier)) on_implied_nak(hca, now, qp, first);
    return;
  }
  const auto bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(expected_bytes, std::uint64_t{packets} * qp.path_mtu));
  if (bytes != 0 && !place(hca, qp, *wqe, offset, view.payload.first(bytes))) {
    return spoil(hca, qp, *wqe, WcStatus::kLocalProtectionError);
  }
  release_read_window(hca, qp, window_cost(packets, bytes));
  note_read(hca, qp, view, packets);
  advance_reading(hca, now, qp);
}

void on_read_response(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  RcRequester& requester = qp.requester;
  if (requester.recovery.is_reading) [[unlikely]]
    return on_read_among_gaps(hca, now, qp, view);
  const SendWqe* wqe = awaited(hca, now, qp, view);
  if (wqe != nullptr && wqe->operation == SendOperation::kAtomicWrite) {
    on_atomic_written(hca, now, qp, view);
    return;
  }
  if (wqe == nullptr || wqe->operation != SendOperation::kRead) {
    if (requester.recovery.is_reading) return on_read_among_gaps(hca, now, qp, view);
    ++hca.counters.rx_stale_response;
    return;
  }
  const Psn first = view.bth.psn;
  const Psn end = requester.read_ends[requester.reads_oldest];
  const std::uint32_t left = static_cast<std::uint32_t>(distance(first, end)) + 1;
  const bool is_end = view.packet_count == left;
  const std::uint64_t offset = offset_of(wqe->first_psn, first, qp.path_mtu);
  const std::uint64_t expected_bytes =
      std::min<std::uint64_t>(wqe->length - offset, std::uint64_t{view.packet_count} * qp.path_mtu);
  // What was asked for in parts may be answered so, and late.
  const bool is_part = view.opcode->ends() && requester.recovery.asks_for_parts;
  if (view.packet_count > left || (view.opcode->ends() != is_end && !is_part) ||
      view.payload.size() != expected_bytes) {
    fail_oldest(hca, qp, WcStatus::kBadResponse);
    return;
  }
  if (!view.payload.empty() && !place(hca, qp, *wqe, offset, view.payload)) {
    fail_oldest(hca, qp, WcStatus::kLocalProtectionError);
    return;
  }
  release_read_window(hca, qp,
                      window_cost(view.packet_count, static_cast<std::uint32_t>(expected_bytes)));
  requester.oldest_unacked_psn = first + view.packet_count;
  if (is_end) pop_read(requester);
  if (is_end && end == wqe->last_psn) {
    finish_oldest(hca, qp, wqe->length);
    catch_up(requester);
  }
  on_progress(hca, now, qp);
}

void on_atomic_acknowledge(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  RcRequester& requester = qp.requester;
  const SendWqe* wqe = awaited(hca, now, qp, view);
  if (wqe == nullptr || !is_atomic(wqe->operation)) {
    ++hca.counters.rx_stale_response;
    return;
  }
  const std::uint64_t original = view.atomic_ack_eth.original;
  std::array<std::byte, sizeof original> bytes;  // NOLINT: filled below
  std::memcpy(bytes.data(), &original, sizeof original);
  if (!place(hca, qp, *wqe, 0, bytes)) {
    fail_oldest(hca, qp, WcStatus::kLocalProtectionError);
    return;
  }
  requester.oldest_unacked_psn = view.bth.psn + 1;
  pop_read(requester);
  finish_oldest(hca, qp, sizeof original);
  catch_up(requester);
  on_progress(hca, now, qp);
}

// An answer to what was answered before. From a responder of ours it may be a hint (GapHint).
[[gnu::cold]] void on_stale(HcaState& hca, Qp& qp, const wire::PacketView& view) {
  ++hca.counters.rx_stale_response;
  if (view.opcode->kind != Kind::kAcknowledge || !view.aeth.syndrome.is_ack()) return;
  if (qp.requester.recovery.hole_count == 0) return;
  on_hint(hca, qp, GapHint::missing(qp.requester.oldest_unacked_psn, view.bth.psn));
}

}  // namespace

void on_response(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  ++hca.counters.rx_responses;
  const QpState state = qp.state.load(std::memory_order_relaxed);
  if (state != QpState::kRts && state != QpState::kSqd) {
    ++hca.counters.rx_stale_response;
    return;
  }
  if (!is_outstanding(qp.requester, view.bth.psn)) {
    on_stale(hca, qp, view);
    return;
  }
  switch (view.opcode->kind) {
    case Kind::kReadResponse:
      on_read_response(hca, now, qp, view);
      break;
    case Kind::kAtomicAcknowledge:
      on_atomic_acknowledge(hca, now, qp, view);
      break;
    case Kind::kAcknowledge:
      on_acknowledge(hca, now, qp, view);
      break;
    case Kind::kReserved:
    case Kind::kSend:
    case Kind::kWrite:
    case Kind::kReadRequest:
    case Kind::kCompareSwap:
    case Kind::kFetchAdd:
    case Kind::kFlush:
    case Kind::kAtomicWrite:
      return;  // requests
  }
  if (qp.state.load(std::memory_order_relaxed) != QpState::kErr) go_on(hca, qp);
}

}  // namespace uroce::transport
