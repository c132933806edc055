// SPDX-License-Identifier: BSD-2-Clause
// What tells this host, boot and network namespace from all others.
#pragma once

#include <cstdint>
#include <string>

namespace uroce::host {

struct HostIdentity {
  std::string machine_id;               // of the installation; containers often have none
  std::string boot_id;                  // of the running kernel
  std::uint64_t network_namespace = 0;  // its inode, unique on a running kernel
};

[[nodiscard]] HostIdentity read_host_identity();

}  // namespace uroce::host
