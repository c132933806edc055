// SPDX-License-Identifier: BSD-2-Clause
// IP addresses as GIDs: conversions and the sums that ARP, neighbour discovery and routing need.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "datapath/neighbour/ethernet.h"
#include "uroce/ids.h"

namespace uroce::datapath {

// An address of ours with its subnet. Prefix lengths count in the family's own bits: up to 32 for
// an IPv4-mapped GID, up to 128 else.
struct InterfaceAddress {
  Gid gid;
  std::uint8_t prefix_bits = 0;
  friend constexpr bool operator==(const InterfaceAddress&, const InterfaceAddress&) = default;
};

constexpr Gid ipv4_mapped(const std::array<std::uint8_t, 4>& ipv4) {
  Gid gid;
  gid.bytes[10] = gid.bytes[11] = 0xff;
  std::copy(ipv4.begin(), ipv4.end(), gid.bytes.begin() + 12);
  return gid;
}

constexpr std::array<std::uint8_t, 4> ipv4_of(const Gid& gid) {
  return {gid.bytes[12], gid.bytes[13], gid.bytes[14], gid.bytes[15]};
}

constexpr bool is_unspecified(const Gid& gid) {
  return gid.is_zero() || gid == ipv4_mapped({0, 0, 0, 0});
}

// fe80::/64 and the modified EUI-64 of the MAC (RFC 4291, appendix A).
constexpr Gid link_local_of(const MacAddress& mac) {
  const auto& m = mac.bytes;
  return {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(m[0] ^ 2), m[1], m[2], 0xff,
           0xfe, m[3], m[4], m[5]}};
}

// ff02::1:ffXX:XXXX, where the owner of `gid` listens for questions (RFC 4291, 2.7.1).
constexpr Gid solicited_node_of(const Gid& gid) {
  return {{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, gid.bytes[13], gid.bytes[14],
           gid.bytes[15]}};
}

// Where a multicast address goes on Ethernet (RFC 1112, 6.4; RFC 2464, 7).
constexpr MacAddress multicast_mac_of(const Gid& gid) {
  const auto& b = gid.bytes;
  if (gid.is_ipv4()) {
    return {{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(b[13] & 0x7f), b[14], b[15]}};
  }
  return {{0x33, 0x33, b[12], b[13], b[14], b[15]}};
}

constexpr bool same_subnet(const InterfaceAddress& own, const Gid& other) {
  if (own.gid.is_ipv4() != other.is_ipv4()) return false;
  unsigned bits = own.gid.is_ipv4() ? 96u + own.prefix_bits : own.prefix_bits;
  for (std::size_t i = 0; bits > 0; ++i) {
    const unsigned here = std::min(bits, 8u);
    const unsigned mask = 0xffu << (8 - here) & 0xffu;
    if (((own.gid.bytes[i] ^ other.bytes[i]) & mask) != 0) return false;
    bits -= here;
  }
  return true;
}

}  // namespace uroce::datapath
