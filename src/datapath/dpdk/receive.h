// SPDX-License-Identifier: BSD-2-Clause
// Packets in: a burst of mbufs is looked through, RoCE packets to our addresses whose ICRC is right
// are lent to the engine until the next burst, control traffic is answered, and the rest is dropped
// and counted; or lent as frames, where somebody wants those.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "datapath/dpdk/port.h"
#include "datapath/dpdk/transmit.h"
#include "datapath/neighbour/resolver.h"
#include "uroce/datapath.h"

namespace uroce::datapath {

struct ReceiveOptions {
  std::vector<Gid> addresses;  // ours; none means that every address is
  bool verify_icrc = true;
};

class Receiver {
 public:
  Receiver(Port& port, Resolver& resolver, Transmitter& transmitter, ReceiveOptions options,
           DatapathCounters& counters);

  // As Datapath::rx_burst.
  std::size_t receive(Instant now, std::span<RxPacket> packets);

  void lend_frames(Datapath::Frames which) { frames_ = which; }

  // Takes back what is lent.
  void clear();
  void abandon() { lent_count_ = 0; }

 private:
  struct Addresses {
    Gid source;
    Gid destination;
  };

  void choose_next_burst(std::size_t packet_bytes);
  // False when there is nothing to lend.
  bool look_at(Instant now, rte_mbuf* mbuf, RxPacket& packet);
  bool check(const wire::NetworkView& view);
  // The whole frames that lent packets of RoCE came in.
  void show_frames(std::span<RxPacket> packets) const;
  // As look_at, of a frame that is not RoCE's, or not to us.
  bool lend_foreign(ConstBytes frame, RxPacket& packet) const;
  void answer(Instant now, ConstBytes frame);
  [[nodiscard]] bool is_ours(const Gid& address) const;

  Port& port_;
  Resolver& resolver_;
  Transmitter& transmitter_;
  ReceiveOptions options_;
  DatapathCounters& counters_;
  std::array<rte_mbuf*, Port::kBurst> lent_{};
  std::array<Addresses, Port::kBurst> addresses_{};
  std::size_t lent_count_ = 0;
  std::size_t next_burst_ = Port::kBurst;
  Datapath::Frames frames_ = Datapath::Frames::kNone;
};

}  // namespace uroce::datapath
