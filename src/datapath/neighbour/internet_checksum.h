// SPDX-License-Identifier: BSD-2-Clause
// The Internet checksum (RFC 1071) of the control packets that the resolver answers: ICMP echo and
// neighbour discovery. Packets of the fast path never come here.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "uroce/ids.h"
#include "uroce/packet.h"

namespace uroce::datapath {

// One's complement sum, not yet inverted; pieces of even length may be added one after another.
constexpr std::uint32_t checksum_add(std::uint32_t sum, std::uint16_t word) { return sum + word; }

inline std::uint32_t checksum_add(std::uint32_t sum, ConstBytes bytes) {
  std::size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) {
    sum += std::to_integer<std::uint32_t>(bytes[i]) << 8 |
           std::to_integer<std::uint32_t>(bytes[i + 1]);
  }
  if (i < bytes.size()) sum += std::to_integer<std::uint32_t>(bytes[i]) << 8;
  return sum;
}

constexpr std::uint16_t checksum_finish(std::uint32_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

// Over the IPv6 pseudo header (RFC 8200, 8.1) and `message`.
inline std::uint16_t icmpv6_checksum(const Gid& source, const Gid& destination,
                                     ConstBytes message) {
  constexpr std::uint16_t kIcmpv6 = 58;
  std::uint32_t sum = checksum_add(0, std::as_bytes(std::span(source.bytes)));
  sum = checksum_add(sum, std::as_bytes(std::span(destination.bytes)));
  sum = checksum_add(sum, static_cast<std::uint16_t>(message.size()));
  sum = checksum_add(sum, kIcmpv6);
  return checksum_finish(checksum_add(sum, message));
}

}  // namespace uroce::datapath
