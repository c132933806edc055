// SPDX-License-Identifier: BSD-2-Clause
// IPv6 neighbour discovery (RFC 4861) for a port that the kernel does not own: solicitations and
// advertisements, packets in, packets out, no state. No routers, no redirects, no duplicate address
// detection: the addresses are the user's to choose.
#pragma once

#include <cstddef>
#include <optional>

#include "datapath/neighbour/ethernet.h"
#include "uroce/ids.h"

namespace uroce::datapath {

// Ethernet, IPv6, ICMPv6 with target, one link-layer address option.
inline constexpr std::size_t kNdFrameBytes = 14 + 40 + 24 + 8;

struct NdMessage {
  bool is_solicitation = false;
  bool is_answer = false;              // an advertisement that was asked for
  Gid sender;                          // unspecified in a duplicate address probe
  Gid target;                          // who is sought, or whose MAC is told
  MacAddress sender_mac;               // of the Ethernet header
  std::optional<MacAddress> told_mac;  // of the link-layer address option
};

// `frame` is a whole Ethernet frame of type IPv6. Nothing when it is something else, its checksum
// is wrong, or it came from beyond a router (hop limit below 255: RFC 4861, 7.1).
[[nodiscard]] std::optional<NdMessage> parse_nd(ConstBytes frame);

// Both write a whole frame of kNdFrameBytes and return that.
// To the solicited-node group, or to `last_known` where it is given.
std::size_t build_solicitation(Bytes frame, const MacAddress& own_mac, const Gid& own,
                               const Gid& target, const MacAddress* last_known);
std::size_t build_advertisement(Bytes frame, const MacAddress& own_mac,
                                const NdMessage& solicitation);

}  // namespace uroce::datapath
