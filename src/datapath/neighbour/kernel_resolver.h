// SPDX-License-Identifier: BSD-2-Clause
// Next hops of an interface that the kernel owns too (af_packet, af_xdp): the kernel's own tables
// say where to send, and the kernel asks on the wire. The answer is looked at again every second,
// so that a neighbour that changes its MAC is followed.
#pragma once

#include "datapath/neighbour/kernel_tables.h"
#include "datapath/neighbour/resolver.h"

namespace uroce::datapath {

class KernelResolver final : public Resolver {
 public:
  // On a loopback interface every address is reached by a MAC of zeros.
  KernelResolver(unsigned interface_index, bool is_loopback);

  std::size_t on_frame(Instant, ConstBytes, Bytes) override { return 0; }  // the kernel answers
  std::size_t poll_frame(Instant now, Bytes frame) override;

  void close_descriptors() { tables_.close_descriptors(); }

 private:
  int find_next_hop(const Path& path, Gid& next_hop) override;
  void on_open(std::uint32_t route) override;
  void look_up(Instant now, const Gid& next_hop);

  KernelTables tables_;
  bool is_loopback_;
  Instant now_;  // of the last turn
};

}  // namespace uroce::datapath
