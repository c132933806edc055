// SPDX-License-Identifier: BSD-2-Clause
// Which packets of a requester ask for an acknowledgement (IBTA 9.7.4.1.2, the bit AckReq): as few
// as keep windows, flights and completions moving.
#pragma once

#include "transport/rc.h"
#include "transport/window.h"

namespace uroce::transport {

// An acknowledgement is asked for at least this often, so that slots free up and windows move.
inline constexpr std::uint32_t kPacketsUnaskedMax = 256;
// With a window, so often that it opens while most of it is still on the way.
inline constexpr std::uint32_t kAskedPerWindow = 4;
// A limited flight opens in small steps, or the path runs empty between them.
inline constexpr std::uint32_t kAskedPerFlight = 16;

// How many packets more may be unacknowledged.
[[nodiscard]] inline std::uint32_t flight_room(const RcRequester& requester) {
  return requester.flight.room((requester.send_psn - requester.oldest_unacked_psn.value()).value());
}

// Nor may the flight end before an answer was asked for.
[[nodiscard]] inline bool flight_wants_ack(const RcRequester& requester, std::uint32_t packets) {
  const Flight& flight = requester.flight;
  return flight.is_limited() && (requester.packets_unasked >= flight.limit / kAskedPerFlight ||
                                 flight_room(requester) <= packets);
}

// The peer's window must not fill up with packets that nobody asked an answer for.
[[nodiscard]] inline bool window_wants_ack(const HcaState& hca, const Qp& qp, std::uint32_t cost) {
  if (qp.peer == nullptr) return false;
  const std::uint32_t window = hca.links[qp.link].facts.peer_window_bytes;
  return qp.requester.cost_unasked >= window / kAskedPerWindow ||
         window_room(hca, qp) < cost + 4 * window_cost(1, qp.path_mtu);
}

// So far nobody else would ask: there is nothing behind it, or a local operation or one with a
// local fault, which waits for it and sends nothing.
[[nodiscard]] inline bool is_last_to_ask(const Qp& qp) {
  const RcRequester& requester = qp.requester;
  const std::uint32_t next = requester.send_index + 1;
  if (next == requests_end(qp)) return true;
  const SendWqe& behind = qp.send_queue.at(next);
  const bool is_taken_up = static_cast<std::int32_t>(requester.assigned_index - next) > 0;
  return is_local(behind.operation) || (is_taken_up && behind.status != WcStatus::kSuccess);
}

// Nothing more is sent for now, because of a local fault or in SQD, and the request before has
// neither asked for an acknowledgement nor an answer of its own: when it was sent, nobody knew.
[[nodiscard]] inline bool waits_unasked(const Qp& qp) {
  const RcRequester& requester = qp.requester;
  if (requester.packets_unasked == 0 || requester.send_index == requester.oldest_index)
    return false;
  const bool ends = requester.send_index == requester.assigned_index;
  const bool nothing_follows =
      ends ? qp.state.load(std::memory_order_relaxed) == QpState::kSqd
           : qp.send_queue.at(requester.send_index).status != WcStatus::kSuccess;
  const SendOperation before = qp.send_queue.at(requester.send_index - 1).operation;
  return nothing_follows && !is_read_or_atomic(before) && !is_local(before);
}

[[nodiscard]] inline bool wants_ack(const HcaState& hca, Qp& qp, const SendWqe& wqe,
                                    std::uint32_t packets, std::uint32_t cost, bool ends) {
  RcRequester& requester = qp.requester;
  bool asks = ends && (wqe.is_signaled() || qp.signal_all || is_last_to_ask(qp));
  if (!asks) {
    requester.packets_unasked += packets;
    requester.cost_unasked += cost;
    asks = requester.packets_unasked >= kPacketsUnaskedMax ||
           flight_wants_ack(requester, packets) || window_wants_ack(hca, qp, cost);
  }
  if (asks) requester.packets_unasked = requester.cost_unasked = 0;
  return asks;
}

}  // namespace uroce::transport
