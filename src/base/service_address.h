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

  static constexpr ServiceAddress at(const Gid& gid) {
    return {gid, gid.is_ipv4() ? Family::kIpv4 : Family::kIpv6};
  }
  [[nodiscard]] constexpr bool is_any() const { return gid.is_zero(); }
  [[nodiscard]] constexpr bool covers(const Gid& address) const { return overlaps(at(address)); }
  // Two that could both be meant by one address.
  [[nodiscard]] constexpr bool overlaps(const ServiceAddress& other) const {
    const bool same_family =
        family == Family::kBoth || other.family == Family::kBoth || family == other.family;
    return same_family && (is_any() || other.is_any() || gid == other.gid);
  }
  friend constexpr bool operator==(const ServiceAddress&, const ServiceAddress&) = default;
};

}  // namespace uroce
