// SPDX-License-Identifier: BSD-2-Clause
// What was sent to a multicast group is for this process, too, and no port gives back what it sent:
// copies wait here to be received. Those that find no room are lost, as on any network.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "datapath/dpdk/port.h"

namespace uroce::datapath {

class Loopback {
 public:
  explicit Loopback(const Port& port) : port_(port) {}

  void add(const rte_mbuf* sent);
  // How many, from the front; they are the caller's then.
  std::size_t take(std::span<rte_mbuf*> packets);
  [[nodiscard]] bool is_empty() const { return count_ == 0; }
  void clear();
  // In a forked child: they are the parent's.
  void abandon() { count_ = 0; }

 private:
  const Port& port_;
  std::array<rte_mbuf*, Port::kBurst> waiting_{};
  std::size_t count_ = 0;
};

}  // namespace uroce::datapath
