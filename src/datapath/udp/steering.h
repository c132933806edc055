// SPDX-License-Identifier: BSD-2-Clause
// The classic BPF program that hands a datagram to the process that owns its destination QP.
//
// Sockets that share a port form a reuseport group, and the program answers with the index of a
// socket in it. The filter's data begin at the BTH, whose destination QPN lies at offset 5, so the
// half word at 5 is the QPN's block of 256. Neighbouring blocks of one owner merge into a range,
// and the ranges become a binary search: two ranges or two hundred cost a few instructions each.
// Blocks that nobody owns, and those that no longer fit into the program, are answered with an
// index that does not exist, which makes the kernel choose by hash; whoever gets such a packet
// passes it on (group.h).
//
// QP1 is everybody's. What it gets is about a connection, whose identifier tells a block too, or
// asks for a service, of which a program knows nothing: that goes by hash, and is passed on.
//
// Control datagrams (control.h) name the index they want in their half word at 2.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace uroce::datapath::udp {

struct OwnedBlock {
  std::uint16_t block = 0;
  std::uint16_t member = 0;  // index in the reuseport group
};

// `blocks` sorted by block. At most `instructions_max` instructions come back.
[[nodiscard]] std::vector<sock_filter> build_steering_program(std::span<const OwnedBlock> blocks,
                                                              std::size_t instructions_max);

// Installs the program for the whole group that `socket` belongs to; a program too large for this
// kernel is built again, smaller. 0 or an errno.
[[nodiscard]] int attach_steering_program(int socket, std::span<const OwnedBlock> blocks);

}  // namespace uroce::datapath::udp
