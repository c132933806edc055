// SPDX-License-Identifier: BSD-2-Clause
// ARP (RFC 826) for a port that the kernel does not own: packets in, packets out, no state.
#pragma once

#include <cstddef>
#include <optional>

#include "datapath/neighbour/ethernet.h"
#include "uroce/ids.h"

namespace uroce::datapath {

inline constexpr std::size_t kArpFrameBytes = 42;

// What one ARP packet says, whichever kind it is: the sender has `sender` at `sender_mac`.
struct ArpMessage {
  bool is_request = false;
  MacAddress sender_mac;
  Gid sender;  // IPv4-mapped; 0.0.0.0 in an address probe, which claims nothing
  Gid target;
};

// `frame` is a whole Ethernet frame of type ARP; nothing when it is not ARP for IPv4.
[[nodiscard]] std::optional<ArpMessage> parse_arp(ConstBytes frame);

// Both write a whole frame of kArpFrameBytes and return that.
std::size_t build_arp_request(Bytes frame, const MacAddress& own_mac, const Gid& own,
                              const Gid& target, const MacAddress& ask);
std::size_t build_arp_reply(Bytes frame, const MacAddress& own_mac, const ArpMessage& request);

}  // namespace uroce::datapath
