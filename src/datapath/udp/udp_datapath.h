// SPDX-License-Identifier: BSD-2-Clause
// RoCE v2 over kernel UDP sockets: any host, any interface, no privilege.
//
//   auto link = UdpDatapath::create(directory, {.interface = "eth0", .interface_mtu = 1500});
//   if (!link) return report(link.error());     // one line: what, why, and who holds the port
//
// The parts: sockets.h opens them, route.h resolves paths, sender.h and send_batch.h turn runs into
// UDP_SEGMENT trains, receiver.h cuts arrived trains, memberships.h joins multicast groups, group.h
// shares the port with the user's other processes.
#pragma once

#include <memory>

#include "base/result.h"
#include "datapath/directory/directory.h"
#include "datapath/udp/group.h"
#include "datapath/udp/memberships.h"
#include "datapath/udp/options.h"
#include "datapath/udp/receiver.h"
#include "datapath/udp/route.h"
#include "datapath/udp/sender.h"
#include "uroce/datapath.h"

namespace uroce::datapath {

class UdpDatapath final : public Datapath {
 public:
  // `directory` must outlive the datapath; QPs get packets once their block is claimed in it.
  static Result<std::unique_ptr<UdpDatapath>> create(Directory& directory,
                                                     const UdpOptions& options);
  ~UdpDatapath() override;

  [[nodiscard]] const DatapathCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] const DatapathCounters& counters() const override { return counters_; }
  [[nodiscard]] int open_path(Path& path, Qpn destination) override;
  void close_path(Path& path) override;
  [[nodiscard]] int join_group(const Gid& group) override { return memberships_.join(group); }
  void leave_group(const Gid& group) override { memberships_.leave(group); }
  [[nodiscard]] std::size_t rx_burst(std::span<RxPacket> packets) override;
  std::size_t tx_burst(std::span<TxFrame> frames) override;
  void on_turn(Instant now) override;
  [[nodiscard]] int wakeup_descriptor() const override;
  [[nodiscard]] bool arm_wakeup() override;
  void disarm_wakeup() override {}
  void abandon_in_child() override;

 private:
  UdpDatapath(std::unique_ptr<udp::Group> group, udp::ReceiveSocket socket,
              const UdpOptions& options);
  std::size_t take(std::span<RxPacket> packets);
  bool is_deliverable(udp::Received& received);
  bool is_for_a_group(const udp::Received& received);
  void drain();

  std::unique_ptr<udp::Group> group_;
  udp::ReceiveSocket socket_;
  DatapathCounters own_counters_;
  DatapathCounters& counters_;
  udp::RouteTable routes_;
  udp::Memberships memberships_;
  udp::Receiver receiver_;
  udp::Sender sender_;
  DatapathCapabilities capabilities_;
};

}  // namespace uroce::datapath
