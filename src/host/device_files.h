// SPDX-License-Identifier: BSD-2-Clause
// The sysfs files of one device, as Linux has them, below class/infiniband/uroceN:
//
//   node_type node_guid sys_image_guid node_desc fw_ver hca_type hw_rev board_id
//   ports/1/{state phys_state rate lid sm_lid lid_mask_count sm_sl cap_mask link_layer}
//   ports/1/gids/N                       all-zero where the slot is empty
//   ports/1/gid_attrs/{types,ndevs}/N    "RoCE v2"; the interface, empty where the slot is
//   ports/1/pkeys/0
//   ports/1/{hw_counters,counters}/NAME  what the preloaded library answers (port_counters.h)
//   device/{numa_node local_cpus local_cpulist net/IF/{ifindex address type dev_id dev_port}}
//
// libibverbs wants gids/N and types/N for every index, so all kLength of each exist; equal ones
// are hard links to one file, which keeps a tree at a few pages of tmpfs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "host/device_table.h"
#include "host/files.h"
#include "host/gid_table.h"

namespace uroce::host {

struct TreeDevice {
  std::string name;
  std::string netdev;  // as it was called when the tree was made; empty: no interface of the kernel
  int interface_index = 0;
  std::uint64_t node_guid = 0;
  GidTable gids;
};

// `path` is the directory of the device itself. Writes what is missing there, or all of it, with an
// empty GID table; the port's state is not among it.
[[nodiscard]] Result<Done> complete_device_files(const std::string& path, const Device& device);

// Of an existing device: the GID files and the state of the port; whether any has changed.
[[nodiscard]] Result<bool> update_device_files(const std::string& path, const std::string& netdev,
                                               const GidTable& gids, bool active);

[[nodiscard]] TreeDevice read_device_files(const std::string& path, const std::string& name);

}  // namespace uroce::host
