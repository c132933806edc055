// SPDX-License-Identifier: BSD-2-Clause
// The 40 bytes before a received datagram: the IPv6 header it came with, or 20 bytes of nothing and
// the IPv4 header (IBTA annex 17.4.5.1.2). Made from what the datapath says of the packet: a socket
// does not show its IP header.
#pragma once

#include <array>
#include <cstddef>

#include "uroce/packet.h"

namespace uroce::wire {

inline constexpr std::size_t kGrhBytes = 40;
using Grh = std::array<std::byte, kGrhBytes>;

// `packet` has both addresses. The IPv4 checksum is right, since libibverbs tells the two forms
// apart by it.
[[nodiscard]] Grh grh_of(const RxPacket& packet);

}  // namespace uroce::wire
