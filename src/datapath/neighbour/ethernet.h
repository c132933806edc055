// SPDX-License-Identifier: BSD-2-Clause
// Ethernet as far as a port that the kernel does not own needs it, beyond what a RoCE packet has
// (wire/network.h): the types that the resolver answers, and the groups.
#pragma once

#include <cstdint>

#include "uroce/packet.h"
#include "wire/bytes.h"
#include "wire/network.h"

namespace uroce::datapath {

using wire::EthernetWire;
using wire::MacAddress;

inline constexpr MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
inline constexpr std::uint16_t kTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kTypeArp = 0x0806;
inline constexpr std::uint16_t kTypeIpv6 = 0x86dd;
inline constexpr std::uint8_t kProtocolIcmp = 1;
inline constexpr std::uint8_t kProtocolIcmpv6 = 58;

// The low bit of the first byte; broadcast is one of these.
constexpr bool is_group(const MacAddress& mac) { return (mac.bytes[0] & 1) != 0; }

inline EthernetWire make_ethernet(const MacAddress& to, const MacAddress& from,
                                  std::uint16_t type) {
  return {to.bytes, from.bytes, Be16(type)};
}

// A wire struct out of bytes, and into them; the caller has checked that there are enough.
template <typename Wire>
Wire read_wire(ConstBytes bytes, std::size_t offset = 0) {
  return wire::load<Wire>(bytes.data() + offset);
}
template <typename Wire>
void write_wire(Bytes bytes, std::size_t offset, const Wire& value) {
  wire::store(bytes.data() + offset, value);
}

}  // namespace uroce::datapath
