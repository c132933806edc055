// SPDX-License-Identifier: BSD-2-Clause
// Frames out: each packet of a run becomes one mbuf with Ethernet to ICRC in it. A driver may take
// fewer packets than it is given; those already built wait here, in order, and leave before
// anything else. There are never more than one burst of them, and no new frame is begun while
// there are, so that the engine sees a full port as refused frames and loses nothing.
//
// A port whose other side has stopped taking must not hold a queue pair for ever: after a quarter
// of a second without progress, or at once where the link is down, packets are dropped and counted,
// and the transport's own retries decide.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "datapath/dpdk/loopback.h"
#include "datapath/dpdk/port.h"
#include "datapath/neighbour/resolver.h"
#include "uroce/datapath.h"
#include "uroce/time.h"

namespace uroce::datapath {

class Transmitter {
 public:
  Transmitter(Port& port, const Resolver& resolver, std::uint16_t path_mtu,
              DatapathCounters& counters)
      : port_(port),
        resolver_(resolver),
        path_mtu_(path_mtu),
        counters_(counters),
        loopback_(port) {}

  // As Datapath::tx_burst.
  std::size_t send(std::span<TxFrame> frames);

  // A finished frame of control traffic; lost, like any datagram, where there is no room.
  void send_control(ConstBytes frame);

  void on_turn(Instant now);

  // What was sent to groups.
  [[nodiscard]] Loopback& loopback() { return loopback_; }

  [[nodiscard]] bool is_idle() const { return waiting_begin_ == waiting_end_; }
  void abandon() {
    waiting_begin_ = waiting_end_ = 0;
    loopback_.abandon();
  }
  // Gives back what waits.
  void clear();

 private:
  static constexpr Duration kStalledAfter = milliseconds(100);

  [[nodiscard]] bool is_sendable(const TxFrame& frame) const;
  [[nodiscard]] bool build_frame(const TxFrame& frame, const wire::LinkAddresses& link);
  // Of a whole Ethernet frame: as it is.
  [[nodiscard]] bool copy_frame(const TxFrame& frame);
  [[nodiscard]] bool take_mbufs(std::size_t count);
  // Hands over what waits; true when all of it is gone.
  bool flush();
  void drop_waiting();
  void give_back_waiting();

  Port& port_;
  const Resolver& resolver_;
  std::uint16_t path_mtu_;
  DatapathCounters& counters_;
  Loopback loopback_;
  std::array<rte_mbuf*, Port::kBurst> waiting_{};
  std::size_t waiting_begin_ = 0;
  std::size_t waiting_end_ = 0;
  Instant now_;
  Instant progressed_at_;
};

}  // namespace uroce::datapath
