// SPDX-License-Identifier: BSD-2-Clause
// How much may be on its way at once on links that lose what a receiver cannot hold (sockets, NIC
// rings). Two windows: the peer process's receive buffer, shared by all our QPs that send to it,
// and our own, shared by all READ responses that we asked for. Trusted memory has neither: it
// refuses frames instead.
//
// A window is never so full that nothing is on its way, so each QP makes progress whatever its
// size.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/hca_state.h"
#include "transport/segment.h"

namespace uroce::transport {

// What a socket buffer accounts for a packet on top of its payload, roughly.
inline constexpr std::uint32_t kPacketOverheadBytes = 512;

constexpr std::uint32_t window_cost(std::uint32_t packets, std::uint32_t bytes) {
  return packets * kPacketOverheadBytes + bytes;
}

// Of the packets [from, from + packets) of the message in `wqe`. Only SENDs and WRITEs carry data
// to the peer.
inline std::uint32_t window_cost(const Qp& qp, const SendWqe& wqe, Psn from,
                                 std::uint32_t packets) {
  if (is_read_or_atomic(wqe.operation)) return 0;
  const std::uint64_t start = offset_of(wqe.first_psn, from, qp.path_mtu);
  const std::uint64_t bytes =
      std::min<std::uint64_t>(std::uint64_t{packets} * qp.path_mtu, wqe.length - start);
  return window_cost(packets, static_cast<std::uint32_t>(bytes));
}

// Those that waited for room try again.
inline void wake_waiting(LinkState& link) { link.ready.append(link.waiting); }

inline void take_window(Qp& qp, std::uint32_t cost) {
  if (qp.peer == nullptr) return;
  qp.requester.window_used += cost;
  qp.peer->window_used += cost;
}

inline void release_window(HcaState& hca, Qp& qp, std::uint32_t cost) {
  if (qp.peer == nullptr) return;
  // Less than `cost` is left when the packets were counted back by a rewind before.
  cost = std::min(cost, qp.requester.window_used);
  qp.requester.window_used -= cost;
  qp.peer->window_used -= cost;
  wake_waiting(hca.links[qp.link]);
}

inline void take_read_window(HcaState& hca, Qp& qp, std::uint32_t bytes) {
  qp.requester.read_window_used += bytes;
  hca.links[qp.link].reads_in_flight += bytes;
}

inline void release_read_window(HcaState& hca, Qp& qp, std::uint32_t bytes) {
  bytes = std::min(bytes, qp.requester.read_window_used);
  qp.requester.read_window_used -= bytes;
  hca.links[qp.link].reads_in_flight -= bytes;
  wake_waiting(hca.links[qp.link]);
}

// Bytes of payload that may go to the peer now; at least one packet when nothing is on its way.
inline std::uint32_t window_room(const HcaState& hca, const Qp& qp) {
  const std::uint32_t window = hca.links[qp.link].facts.peer_window_bytes;
  if (qp.peer == nullptr || window == 0) return ~0U;
  const std::uint32_t used = qp.peer->window_used;
  if (used == 0) return std::max<std::uint32_t>(window, window_cost(1, qp.path_mtu));
  return used >= window ? 0 : window - used;
}

// READs are asked for in pieces of so many packets, so that the answers fit our own window. The
// pieces begin at multiples from the beginning of the message, also when one is asked for again.
inline std::uint32_t read_piece_packets(const HcaState& hca, const Qp& qp) {
  const std::uint32_t window = hca.links[qp.link].facts.peer_window_bytes;
  if (window == 0) return 0x80'0000;
  return std::max<std::uint32_t>(1, window / 2 / window_cost(1, qp.path_mtu));
}

// The packets of the piece that begins at `psn`, or what is left of one from there.
inline std::uint32_t read_piece(const HcaState& hca, const Qp& qp, const SendWqe& wqe, Psn psn) {
  const auto total = static_cast<std::uint32_t>(distance(wqe.first_psn, wqe.last_psn)) + 1;
  const auto done = static_cast<std::uint32_t>(distance(wqe.first_psn, psn));
  const std::uint32_t piece = read_piece_packets(hca, qp);
  return std::min(total, (done / piece + 1) * piece) - done;
}

}  // namespace uroce::transport
