// SPDX-License-Identifier: BSD-2-Clause
// Which devices there are. Without configuration one, uroce0, on the interface of the default
// route, or on lo where there is none; more by `netdev`, in the order given. A DPDK port is on the
// interface that its arguments name (iface=); it, or a device without uplink, that has configured
// addresses is one device without a kernel interface.
//
// The node GUID: that of the MAC address (EUI-64) where the vendor's are unique; where the address
// was made up locally (virtual machines and containers all have the same few), and on lo, a hash
// of host, namespace, name and MAC. Never 0, never twice in one table: rdma_cm tells devices apart
// by it alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/config.h"
#include "host/host_identity.h"
#include "host/interfaces.h"

namespace uroce::host {

struct Device {
  std::string name;    // "uroce0"
  std::string netdev;  // empty: no interface of the kernel
  int interface_index = 0;
  std::uint64_t node_guid = 0;
  MacAddress mac{};  // zero where only the port itself knows it
  std::uint32_t mtu_bytes = 0;
  std::uint32_t megabits_per_second = 0;
  bool active = false;    // up, with a carrier
  std::vector<Gid> gids;  // in the order of a new GID table
};

[[nodiscard]] Result<std::vector<Device>> make_device_table(const Config& config,
                                                            const HostNetwork& network,
                                                            const HostIdentity& identity);

// Names of the kernel interfaces that the configuration chooses, in order; none for a device
// with addresses of its own.
[[nodiscard]] Result<std::vector<std::string>> chosen_netdevs(const Config& config,
                                                              const HostNetwork& network);

// Interfaces that reach other hosts, where nothing was chosen and the device is on lo for want of a
// default route.
[[nodiscard]] std::vector<std::string> passed_over(const Config& config,
                                                   const HostNetwork& network);

}  // namespace uroce::host
