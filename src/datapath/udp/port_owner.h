// SPDX-License-Identifier: BSD-2-Clause
// Says who holds a UDP port, from /proc: for the one line that a second user gets.
#pragma once

#include <cstdint>
#include <string>

namespace uroce::datapath::udp {

// "uid 1000 (alice), pid 4321 (ib_write_bw)", with less where /proc shows less; a kernel socket,
// rxe's for one, has no inode of a process and is called so. Empty: nobody holds the port.
[[nodiscard]] std::string describe_port_owner(std::uint16_t port);

// "cannot bind UDP port 4791: ...": what failed, why, and what to do about it.
[[nodiscard]] std::string explain_bind_failure(std::uint16_t port, int error);

}  // namespace uroce::datapath::udp
