// SPDX-License-Identifier: BSD-2-Clause
// Whether the sockets that have a UDP port share it with programs of this user, as those of uroce
// do: the kernel's own (rxe, a tunnel) do not, and nothing in /proc tells them apart.
#pragma once

#include <cstdint>

namespace uroce::host {

[[nodiscard]] bool is_udp_port_shared(std::uint16_t port);

}  // namespace uroce::host
