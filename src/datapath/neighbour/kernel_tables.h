// SPDX-License-Identifier: BSD-2-Clause
// Questions to the kernel's route and neighbour tables over rtnetlink, one at a time. Control path:
// each is a round trip into the kernel (a few microseconds), never onto the wire.
#pragma once

#include <optional>

#include "datapath/neighbour/address.h"
#include "uroce/ids.h"

namespace uroce::datapath {

class KernelTables {
 public:
  explicit KernelTables(unsigned interface_index);
  ~KernelTables();
  KernelTables(const KernelTables&) = delete;
  KernelTables& operator=(const KernelTables&) = delete;

  // The next hop towards `destination` out of the interface. 0, or the errno of the kernel
  // (ENETUNREACH, EHOSTUNREACH ...); EHOSTUNREACH also for an address of this host, which no frame
  // out of an interface reaches.
  [[nodiscard]] int find_next_hop(const Gid& destination, Gid& next_hop) const;

  // What the neighbour table says, unless it says that nobody answers.
  [[nodiscard]] std::optional<MacAddress> find_neighbour(const Gid& next_hop) const;

  // The kernel would send to it without asking first, whatever kind of address it has. True also
  // where the kernel does not tell (before Linux 5.0).
  [[nodiscard]] bool is_reachable(const Gid& next_hop) const;

  // Makes the kernel ask: by a datagram to the discard port, since setting an entry to "probe"
  // would need a capability that a packet socket does not.
  void make_kernel_ask(const Gid& next_hop) const;

  // In a forked child, and in the destructor.
  void close_descriptors();

 private:
  unsigned interface_index_;
  int netlink_ = -1;
};

}  // namespace uroce::datapath
