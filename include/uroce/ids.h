// SPDX-License-Identifier: BSD-2-Clause
// Names of things on the wire: queue pair numbers and GIDs. One-field structs, so that a QPN cannot
// be passed where a key is meant.
#pragma once

#include <array>
#include <cstdint>

namespace uroce {

// Queue pair number: 24 bits. 0 and 1 are the management QPs, 0xffffff is multicast.
struct Qpn {
  std::uint32_t value = 0;
  friend constexpr bool operator==(Qpn, Qpn) = default;
};

inline constexpr Qpn kMulticastQpn{0xff'ffff};

// QPNs are handed out to processes in blocks of this many, so that a packet's owner is
// `qpn / kQpnsPerBlock`.
inline constexpr std::uint32_t kQpnsPerBlock = 256;
constexpr std::uint32_t qpn_block(Qpn qpn) { return qpn.value / kQpnsPerBlock; }

// 16 bytes in network order. An IPv4 address is ::ffff:a.b.c.d (IBTA annex 17, RoCE v2).
struct Gid {
  std::array<std::uint8_t, 16> bytes{};

  friend constexpr bool operator==(const Gid&, const Gid&) = default;

  [[nodiscard]] constexpr bool is_ipv4() const {
    for (std::size_t i = 0; i < 10; ++i) {
      if (bytes[i] != 0) return false;
    }
    return bytes[10] == 0xff && bytes[11] == 0xff;
  }
  // 224.0.0.0/4 or ff00::/8.
  [[nodiscard]] constexpr bool is_multicast() const {
    return is_ipv4() ? (bytes[12] & 0xf0) == 0xe0 : bytes[0] == 0xff;
  }
  // fe80::/10; no IPv4 address is.
  [[nodiscard]] constexpr bool is_link_local() const {
    return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
  }
  [[nodiscard]] constexpr bool is_zero() const { return *this == Gid{}; }
};

}  // namespace uroce
