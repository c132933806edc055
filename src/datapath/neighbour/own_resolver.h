// SPDX-License-Identifier: BSD-2-Clause
// Addresses of a port that the kernel does not own (a memif, a ring, a NIC taken from the kernel):
// this answers ARP, neighbour discovery and ping for them, and asks for its peers'. Its link-local
// IPv6 address comes from the MAC. There are no routers: a peer is in one of our subnets or out of
// reach.
#pragma once

#include <span>
#include <vector>

#include "datapath/neighbour/resolver.h"

namespace uroce::datapath {

class OwnResolver final : public Resolver {
 public:
  OwnResolver(const MacAddress& mac, std::span<const InterfaceAddress> addresses);

  std::size_t on_frame(Instant now, ConstBytes frame, Bytes reply) override;
  std::size_t poll_frame(Instant now, Bytes frame) override;

  [[nodiscard]] bool is_own(const Gid& address) const;

 private:
  int find_next_hop(const Path& path, Gid& next_hop) override;
  void on_open(std::uint32_t) override {}  // asked at the next turn

  std::size_t on_arp(Instant now, ConstBytes frame, Bytes reply);
  std::size_t on_ipv6(Instant now, ConstBytes frame, Bytes reply);
  [[nodiscard]] std::size_t answer_echo(ConstBytes frame, Bytes reply) const;
  // The address of ours that peers in the subnet of `other` know; null when there is none.
  [[nodiscard]] const Gid* own_towards(const Gid& other) const;

  MacAddress mac_;
  std::vector<InterfaceAddress> addresses_;  // the link-local one last
};

}  // namespace uroce::datapath
