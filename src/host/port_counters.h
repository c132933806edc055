// SPDX-License-Identifier: BSD-2-Clause
// The names under which a port's counters are in sysfs, and of which words of its engines' rows
// each is the sum (uroce/port_counters.h). Names are those of Linux's drivers where one of them
// counts the same; comments say whose they are if not rxe's. A name is here only if what we count
// is what it promises.
//
//   sys/class/infiniband/DEVICE/ports/1/{hw_counters,counters}/NAME     to be listed
//   counters/DEVICE -> ../../counters-...                               the rows
//
// in a device tree. The preloaded library adds up what they are at the moment at which such a file
// is opened. Whoever reads past the library finds in it what Linux writes where a port does not
// count (kNotCounted).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "uroce/port_counters.h"

namespace uroce::host {

inline constexpr std::string_view kNotCounted = "N/A (no PMA)\n";
inline constexpr std::string_view kHardwareCounters = "hw_counters", kStandardCounters = "counters";
// For so many ms Linux's drivers may show an old value. Here none is old.
inline constexpr std::string_view kLifespan = "lifespan";

// The sum of one word of the transport's, of words of each link, and of what could not be parsed;
// where it has them.
struct PortCounter {
  std::string_view folder;
  std::string_view name;
  std::uint64_t TransportCounters::*transport = nullptr;
  std::array<std::uint64_t DatapathCounters::*, 2> links{};
  bool has_malformed = false;
};

namespace detail {

constexpr PortCounter of_links(std::string_view name, std::uint64_t DatapathCounters::*word) {
  return {.folder = kHardwareCounters, .name = name, .links = {word}};
}
constexpr PortCounter of_transport(std::string_view name, std::uint64_t TransportCounters::*word) {
  return {.folder = kHardwareCounters, .name = name, .transport = word};
}

}  // namespace detail

inline constexpr std::array kPortCounters = {
    // Packets, not the runs that carry them; acknowledgements are among them, and over shared
    // memory they count as they would on a wire.
    detail::of_links("sent_pkts", &DatapathCounters::tx_packets),
    detail::of_links("rcvd_pkts", &DatapathCounters::rx_packets),
    detail::of_links("send_err", &DatapathCounters::tx_errors),
    detail::of_links("rx_icrc_encapsulated", &DatapathCounters::rx_bad_icrc),  // mlx5
    // Of a responder.
    detail::of_transport("duplicate_request", &TransportCounters::duplicate_requests),
    detail::of_transport("out_of_seq_request", &TransportCounters::out_of_sequence),
    detail::of_transport("out_of_sequence", &TransportCounters::out_of_sequence),  // mlx5
    detail::of_transport("send_rnr_err", &TransportCounters::rnr_naks_sent),
    // Of a requester; mlx5's where there are two names, and the three after those.
    detail::of_transport("rcvd_rnr_err", &TransportCounters::rnr_naks_received),
    detail::of_transport("rnr_nak_retry_err", &TransportCounters::rnr_naks_received),
    detail::of_transport("rcvd_seq_err", &TransportCounters::sequence_naks_received),
    detail::of_transport("packet_seq_err", &TransportCounters::sequence_naks_received),
    detail::of_transport("implied_nak_seq_err", &TransportCounters::implied_naks),
    detail::of_transport("local_ack_timeout_err", &TransportCounters::timeouts),
    detail::of_transport("retrans_pkts", &TransportCounters::retransmitted_packets),  // efa
    detail::of_transport("retry_exceeded_err", &TransportCounters::retry_exceeded),
    detail::of_transport("retry_rnr_exceeded_err", &TransportCounters::rnr_retry_exceeded),
    // IBTA 16.1.3.5. PortXmitData and PortRcvData are not here: no datapath counts the octets of
    // all headers.
    PortCounter{.folder = kStandardCounters,
                .name = "port_xmit_packets",
                .links = {&DatapathCounters::tx_packets}},
    PortCounter{.folder = kStandardCounters,
                .name = "port_rcv_packets",
                .links = {&DatapathCounters::rx_packets}},
    PortCounter{.folder = kStandardCounters,
                .name = "port_rcv_errors",
                .links = {&DatapathCounters::rx_bad_icrc, &DatapathCounters::rx_truncated},
                .has_malformed = true},
};

// Of one row. Word by word, since its owner writes meanwhile.
inline std::uint64_t value_in(const PortCounters& row, const PortCounter& counter) {
  const auto load = [](const std::uint64_t& word) {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
  };
  std::uint64_t sum = 0;
  if (counter.transport != nullptr) sum += load(row.transport.*counter.transport);
  for (const DatapathCounters& link : row.links) {
    for (const auto word : counter.links) sum += word == nullptr ? 0 : load(link.*word);
  }
  if (!counter.has_malformed) return sum;
  for (const std::uint64_t& count : row.transport.rx_malformed) sum += load(count);
  return sum;
}

}  // namespace uroce::host
