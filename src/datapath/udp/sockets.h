// SPDX-License-Identifier: BSD-2-Clause
// Opens and configures the two kinds of socket: the one on the RoCE port, which only receives, and
// the small pool on high ports, which only send.
//
// Sending sockets stay unconnected and forbid fragmentation without heeding what ICMP said about
// the path: that makes Linux send IPv4 identification 0, which the ICRC must know, and keeps ICMP
// errors of one peer from being reported to the sends of another.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "datapath/udp/options.h"
#include "posix/descriptor.h"

namespace uroce::datapath::udp {

// Bound, non-blocking, of AF_INET6 and dual-stack; of AF_INET on a host without IPv6.
struct ReceiveSocket {
  posix::Descriptor descriptor;
  sa_family_t family = AF_INET6;
  bool coalesces = false;  // UDP_GRO
};
[[nodiscard]] Result<ReceiveSocket> open_receive_socket(const UdpOptions& options);

struct SendingSocket {
  posix::Descriptor descriptor;
  std::uint16_t port = 0;
};
[[nodiscard]] Result<SendingSocket> open_sending_socket(sa_family_t family);

// How many segments one UDP_SEGMENT send may have: 128, 64, or 1 where the kernel has no such
// thing. Found by sending some to ourselves over loopback.
[[nodiscard]] std::size_t probe_segments_max();

}  // namespace uroce::datapath::udp
