// SPDX-License-Identifier: BSD-2-Clause
// Who has a UDP port, from /proc: the socket and its user are visible to everybody, the process
// only to its own user and to root.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cli/doctor_facts.h"

namespace uroce::cli {

struct UdpSocket {
  uid_t user = 0;
  std::uint64_t inode = 0;
};

// `table` is the text of /proc/net/udp or udp6.
[[nodiscard]] std::vector<UdpSocket> sockets_on_port(std::string_view table, std::uint16_t port);

[[nodiscard]] std::vector<PortHolder> find_port_holders(std::uint16_t port);

}  // namespace uroce::cli
