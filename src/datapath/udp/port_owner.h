// SPDX-License-Identifier: BSD-2-Clause
// Says who holds a UDP port, from /proc: for the one line of whoever cannot
// have it too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace uroce::datapath::udp {

struct PortHolder {
  unsigned uid = 0;
  std::string process;  // "pid 4321 (ib_write_bw)"; empty: none that we may see
};

// Empty: nobody holds the port.
[[nodiscard]] std::optional<PortHolder> find_port_holder(std::uint16_t port);

// "uid 1000 (alice), pid 4321 (ib_write_bw), which ...": who it is, why a process of `own_uid`
// cannot have the port as well, and what to do about it. Programs of uroce share it with those of
// the same user.
[[nodiscard]] std::string explain_holder(const PortHolder& holder, unsigned own_uid);

// "cannot bind UDP port 4791: ...", in one line.
[[nodiscard]] std::string explain_bind_failure(std::uint16_t port, int error);

}  // namespace uroce::datapath::udp
