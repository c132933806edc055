// SPDX-License-Identifier: BSD-2-Clause
// Where a service of the communication manager is offered: at one address, or at any of a family.
#pragma once

#include <cstdint>

#include "uroce/ids.h"

namespace uroce {

enum class Family : std::uint8_t { kBoth, kIpv4, kIpv6 };

struct ServiceAddress {
  Gid gid;  // zero: any address
  Family family = Family::kBoth;
  // Of a link-local address: the interface whose it is, since another one's may be the same. 0:
  // whichever has it.
  std::uint32_t scope = 0;

  static constexpr ServiceAddress at(const Gid& gid) {
    return {.gid = gid, .family = gid.is_ipv4() ? Family::kIpv4 : Family::kIpv6};
  }
  [[nodiscard]] constexpr bool is_any() const { return gid.is_zero(); }
  [[nodiscard]] constexpr bool covers(const Gid& address, std::uint32_t at_scope = 0) const {
    ServiceAddress one = at(address);
    one.scope = at_scope;
    return overlaps(one);
  }
  // Two that could both be meant by one address.
  [[nodiscard]] constexpr bool overlaps(const ServiceAddress& other) const {
    const bool same_family =
        family == Family::kBoth || other.family == Family::kBoth || family == other.family;
    const bool same_scope = scope == 0 || other.scope == 0 || scope == other.scope;
    return same_family && (is_any() || other.is_any() || (gid == other.gid && same_scope));
  }
  friend constexpr bool operator==(const ServiceAddress&, const ServiceAddress&) = default;
};

}  // namespace uroce
