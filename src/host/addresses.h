// SPDX-License-Identifier: BSD-2-Clause
// Text forms of addresses: IP addresses as people write them, GIDs as sysfs writes them, MAC
// addresses and GUIDs. In here an IPv4 address is always its GID, ::ffff:a.b.c.d.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uroce/ids.h"

namespace uroce::host {

using MacAddress = std::array<std::uint8_t, 6>;

struct PrefixAddress {
  Gid gid;
  std::uint8_t prefix_length = 0;  // in the address's own family: 24 for 10.0.0.1/24
  friend bool operator==(const PrefixAddress&, const PrefixAddress&) = default;
};

[[nodiscard]] std::optional<Gid> parse_address(std::string_view text);
// "10.0.0.1/24", "fd00::1/64".
[[nodiscard]] std::optional<PrefixAddress> parse_prefix_address(std::string_view text);

[[nodiscard]] std::string format_address(const Gid& gid);  // "10.0.0.1", "fe80::1"
[[nodiscard]] std::string format_prefix_address(const PrefixAddress& address);

// Eight groups of four digits, nothing left out: "fe80:0000:0000:0000:0000:00ff:fe00:0001".
[[nodiscard]] std::string format_gid(const Gid& gid);
[[nodiscard]] std::optional<Gid> parse_gid(std::string_view text);

[[nodiscard]] std::string format_mac(const MacAddress& mac);     // "02:00:00:00:00:01"
[[nodiscard]] std::string format_guid(std::uint64_t node_guid);  // "0000:00ff:fe00:0001"

[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
[[nodiscard]] std::string join(std::span<const std::string> pieces, std::string_view separator);

}  // namespace uroce::host
