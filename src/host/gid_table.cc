// SPDX-License-Identifier: BSD-2-Clause
#include "host/gid_table.h"

#include <algorithm>

namespace uroce::host {
namespace {

int rank(const Gid& gid) { return gid.is_link_local() ? 0 : gid.is_ipv4() ? 1 : 2; }

}  // namespace

bool GidTable::update(std::span<const Gid> in_order) {
  const std::array<Gid, kLength> before = slots_;
  for (Gid& slot : slots_) {
    if (std::ranges::find(in_order, slot) == in_order.end()) slot = Gid{};
  }
  auto used = kLength - static_cast<std::size_t>(std::ranges::count(slots_, Gid{}));
  for (const Gid& gid : in_order) {
    if (gid.is_zero() || find(gid)) continue;
    if (used + 1 == kLength) break;
    *std::ranges::find(slots_, Gid{}) = gid;
    ++used;
  }
  return slots_ != before;
}

std::optional<std::size_t> GidTable::find(const Gid& gid) const {
  const auto found = std::ranges::find(slots_, gid);
  if (gid.is_zero() || found == slots_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - slots_.begin());
}

std::vector<Gid> gids_in_order(std::span<const InterfaceAddress> addresses) {
  std::vector<Gid> gids;
  for (const InterfaceAddress& entry : addresses) {
    const Gid& gid = entry.address.gid;
    if (entry.usable && std::ranges::find(gids, gid) == gids.end()) gids.push_back(gid);
  }
  std::ranges::stable_sort(gids, {}, rank);
  return gids;
}

}  // namespace uroce::host
