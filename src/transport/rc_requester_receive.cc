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

#include "memory/dma.h"
#include "memory/sge_cursor.h"
#include "transport/complete.h"
#include "transport/local_operation.h"
#include "transport/rc.h"
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
    release_window(hca, qp, window_cost(qp, wqe, requester.oldest_unacked_psn, acked));
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

void on_implied_nak(HcaState& hca, Instant now, Qp& qp) {
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
  const Psn psn = view.bth.psn;
  if (psn != qp.requester.oldest_unacked_psn &&
      ack_through(hca, now, qp, psn - 1) == Acknowledged::kGap) {
    on_implied_nak(hca, now, qp);
    return;
  }
  if (qp.state.load(std::memory_order_relaxed) == QpState::kErr) return;
  if (syndrome.kind() == SyndromeKind::kRnrNak) {
    ++hca.counters.rnr_naks_received;
    on_rnr_nak(hca, now, qp, syndrome.rnr_timer());
    return;
  }
  ++hca.counters.naks_received;
  if (syndrome.nak_code() == wire::NakCode::kPsnSequence) {
    on_sequence_nak(hca, now, qp);
  } else {
    fail_oldest(hca, qp, status_of(syndrome.nak_code()));
  }
}

void on_acknowledge(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  if (!view.aeth.syndrome.is_ack()) {
    on_nak(hca, now, qp, view);
  } else if (ack_through(hca, now, qp, view.bth.psn) == Acknowledged::kGap) {
    on_implied_nak(hca, now, qp);
  }
}

// The work request that a data-bearing response answers, if it is the next one awaited. What it
// acknowledges on the way is retired.
const SendWqe* awaited(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  RcRequester& requester = qp.requester;
  const Psn psn = view.bth.psn;
  if (psn != requester.oldest_unacked_psn) {
    const Acknowledged acknowledged = ack_through(hca, now, qp, psn - 1);
    if (acknowledged == Acknowledged::kGap) on_implied_nak(hca, now, qp);
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

void on_read_response(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  RcRequester& requester = qp.requester;
  const SendWqe* wqe = awaited(hca, now, qp, view);
  if (wqe == nullptr || wqe->operation != SendOperation::kRead) {
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
  if (view.packet_count > left || view.opcode->ends() != is_end ||
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
      return;  // requests
  }
  if (qp.state.load(std::memory_order_relaxed) != QpState::kErr) go_on(hca, qp);
}

}  // namespace uroce::transport
