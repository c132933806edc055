// SPDX-License-Identifier: BSD-2-Clause
// A DPDK port as a datapath: the port, who is where on its link, packets out and packets in, and
// what holds them together.
#pragma once

#include <memory>

#include "datapath/dpdk/kernel_interface.h"
#include "datapath/dpdk/parked_ports.h"
#include "datapath/dpdk/port.h"
#include "datapath/dpdk/port_claim.h"
#include "datapath/dpdk/receive.h"
#include "datapath/dpdk/transmit.h"
#include "datapath/dpdk_loader.h"
#include "datapath/neighbour/kernel_resolver.h"
#include "datapath/neighbour/resolver.h"
#include "uroce/datapath.h"

namespace uroce::datapath {

class DpdkDatapath final : public Datapath {
 public:
  // Only in ports that the kernel owns are the last three given.
  struct Parts {
    std::string parking_name;  // where the port goes in the end; empty: it is closed
    std::unique_ptr<PortClaim> claim;
    std::unique_ptr<Port> port;
    std::unique_ptr<Resolver> resolver;
    std::unique_ptr<HeldPort> held_port;
    KernelResolver* kernel_resolver = nullptr;  // the resolver, where it has descriptors
    unsigned interface_index = 0;               // of the kernel's, or 0
  };
  struct Limits {
    std::uint16_t path_mtu = 1024;
    std::uint16_t max_frame_bytes = 0;
    std::uint32_t window_bytes = 0;
  };

  // Counts in `counters`, where there are any.
  DpdkDatapath(Parts parts, const Limits& limits, ReceiveOptions receive,
               DatapathCounters* counters);
  ~DpdkDatapath() override;

  [[nodiscard]] const DatapathCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] const DatapathCounters& counters() const override { return counters_; }
  [[nodiscard]] int open_path(Path& path, Qpn destination) override;
  void close_path(Path& path) override { parts_.resolver->close_path(path); }
  [[nodiscard]] std::size_t rx_burst(std::span<RxPacket> packets) override;
  void lend_frames(Frames which) override;
  std::size_t tx_burst(std::span<TxFrame> frames) override;
  void on_turn(Instant now) override;
  [[nodiscard]] int wakeup_descriptor() const override;
  [[nodiscard]] bool arm_wakeup() override {
    return transmitter_.is_idle() && transmitter_.loopback().is_empty();
  }
  void disarm_wakeup() override {}
  void abandon_in_child() override;

 private:
  void ask_neighbours();

  Parts parts_;
  DatapathCapabilities capabilities_;
  DatapathCounters own_counters_;
  DatapathCounters& counters_;
  const std::uint64_t sent_before_;  // by others who counted there
  PromiscuousInterface promiscuous_;
  Transmitter transmitter_;
  Receiver receiver_;
  Instant now_;  // of the last turn
  bool abandoned_ = false;
};

}  // namespace uroce::datapath
