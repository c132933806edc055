// SPDX-License-Identifier: BSD-2-Clause
// How a datapath that writes its own Ethernet headers learns where to send: the part that is the
// same whether the kernel owns the interface (KernelResolver asks its tables) or nobody does
// (OwnResolver speaks ARP and neighbour discovery itself).
//
// A path's `route` is the index of its next hop in the neighbour table. Finding the MAC of a packet
// is one look at that entry; nothing on the way of a packet asks anybody.
#pragma once

#include <cstdint>

#include "datapath/neighbour/address.h"
#include "datapath/neighbour/table.h"
#include "uroce/packet.h"
#include "uroce/time.h"

namespace uroce::datapath {

class Resolver {
 public:
  explicit Resolver(const NeighbourTable::Timing& timing) : table_(timing) {}
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  virtual ~Resolver() = default;

  // Sets `path.route`. 0, or EHOSTUNREACH where there is no way, ENOBUFS where the table is full.
  [[nodiscard]] int open_path(Path& path);
  void close_path(const Path& path);

  // Where a frame of `path` goes; false while that is not known.
  [[nodiscard]] bool find(const Path& path, MacAddress& destination) const;

  // It may be known soon: a frame should wait.
  [[nodiscard]] bool is_expected(const Path& path) const {
    return path.route < kMulticastRoute && table_.is_expected(path.route);
  }

  // Control traffic. What comes back is the number of bytes in `reply` to be sent, or 0.
  virtual std::size_t on_frame(Instant now, ConstBytes frame, Bytes reply) = 0;
  // The next question as a frame to be sent, or 0 when none is due; call until it is 0.
  virtual std::size_t poll_frame(Instant now, Bytes frame) = 0;

 protected:
  // Whose MAC the packets to `path.destination` carry. 0 or an errno.
  [[nodiscard]] virtual int find_next_hop(const Path& path, Gid& next_hop) = 0;
  // Asked for right after a path was opened, so that a known neighbour is usable at once.
  virtual void on_open(std::uint32_t route) = 0;

  NeighbourTable table_;

 private:
  static constexpr std::uint32_t kMulticastRoute = NeighbourTable::kCapacity;
};

}  // namespace uroce::datapath
