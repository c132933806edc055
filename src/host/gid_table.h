// SPDX-License-Identifier: BSD-2-Clause
// The GID table of a port. Every entry is RoCE v2.
//
// Order of a new table, as Linux fills one: IPv6 link-local, then IPv4, then other IPv6, each in
// the order in which the interface has them. Linux also keeps a default GID (fe80:: and the MAC)
// for an address that the interface may not have; here a GID is an address that works, so `lo` has
// 0: 127.0.0.1, 1: ::1, and an interface without IPv6 begins with IPv4.
//
// An index never moves: an update leaves surviving entries where they are, turns deleted ones into
// zero slots and puts new ones into the first zero slot. One slot always stays zero, because
// programs look for the end of the table.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "host/interfaces.h"
#include "uroce/ids.h"

namespace uroce::host {

class GidTable {
 public:
  static constexpr std::size_t kLength = 128;

  GidTable() = default;
  explicit GidTable(std::span<const Gid> in_order) { update(in_order); }

  // Whether anything has changed. What does not fit is left out.
  bool update(std::span<const Gid> in_order);

  // For a table that somebody else keeps (the device tree): slot by slot, zero for empty.
  void set_slot(std::size_t index, const Gid& gid) { slots_[index] = gid; }

  [[nodiscard]] std::span<const Gid, kLength> slots() const { return slots_; }
  [[nodiscard]] std::optional<std::size_t> find(const Gid& gid) const;

  friend bool operator==(const GidTable&, const GidTable&) = default;

 private:
  std::array<Gid, kLength> slots_{};
};

// The usable addresses in the order of a new table, none twice.
[[nodiscard]] std::vector<Gid> gids_in_order(std::span<const InterfaceAddress> addresses);

}  // namespace uroce::host
