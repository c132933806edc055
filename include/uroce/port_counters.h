// SPDX-License-Identifier: BSD-2-Clause
// What is counted of a port: by the transport, and by the datapaths (datapath.h). One engine's
// counters are words that only grow, of one writer; those that it shares with the host lie in a
// row of a file that all programs of the user may read (engine/counter_row.h). host/port_counters.h
// has the names under which sysfs shows them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "uroce/datapath.h"

namespace uroce {

// Written under the shard's lock.
struct TransportCounters {
  static constexpr std::size_t kMalformedReasons = 8;  // as wire::DropReason

  // Packets that reached no QP, one count each: what the parser said, then ours.
  std::array<std::uint64_t, kMalformedReasons> rx_malformed{};
  std::uint64_t rx_unknown_qpn = 0;
  std::uint64_t rx_wrong_service = 0;  // opcode of another service than the QP's
  std::uint64_t rx_wrong_state = 0;    // the QP takes no packets in its state
  std::uint64_t rx_bad_pkey = 0;
  std::uint64_t rx_wrong_address = 0;  // not from the QP's peer, or not to its own GID
  std::uint64_t rx_bad_qkey = 0;
  // Packets that reached one and changed nothing.
  std::uint64_t rx_stale_response = 0;

  std::uint64_t unreliable_dropped = 0;   // UC messages and datagrams that could not be taken
  std::uint64_t datagrams_to_nobody = 0;  // sent where no path leads

  // Ethernet frames of raw packet QPs: copies received, and those for which no receive waited.
  std::uint64_t raw_received = 0, raw_dropped = 0;

  std::uint64_t rx_requests = 0, rx_responses = 0;
  std::uint64_t duplicate_requests = 0;
  std::uint64_t out_of_sequence = 0;  // arrived ahead of the expected PSN
  std::uint64_t acks_sent = 0, naks_sent = 0, rnr_naks_sent = 0;
  std::uint64_t naks_received = 0, rnr_naks_received = 0;
  std::uint64_t sequence_naks_received = 0;  // of the former
  std::uint64_t implied_naks = 0;
  std::uint64_t timeouts = 0;  // ACK timers that expired
  std::uint64_t rewinds = 0;   // go-back-N restarts
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t selective_retransmissions = 0;       // of what a NAK said is missing, and no more
  std::uint64_t hints_sent = 0, hints_received = 0;  // of further gaps
  std::uint64_t early_retransmissions = 0;  // after measured round trips, before a time-out
  std::uint64_t frames_refused = 0;         // by a datapath, sent later
  std::uint64_t retry_exceeded = 0, rnr_retry_exceeded = 0;
};

struct PortCounters {
  TransportCounters transport;
  std::array<DatapathCounters, 2> links;  // the local one, the uplink
};

// Where they are shared: row after row, each so long, in whole pages. Nothing but words.
inline constexpr std::size_t kCounterRowBytes = 1024;
static_assert(sizeof(PortCounters) <= kCounterRowBytes);
static_assert(sizeof(PortCounters) % sizeof(std::uint64_t) == 0);

}  // namespace uroce
