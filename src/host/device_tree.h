// SPDX-License-Identifier: BSD-2-Clause
// The directory that stands in for /sys/class/infiniband*, /sys/class/infiniband_verbs* and
// /dev/infiniband. The contract with the preloaded library, which gets its path as UROCE_TREE:
//
//   <tree>/sys/class/infiniband_verbs/{abi_version,uverbsN/{ibdev,dev,abi_version}}
//   <tree>/sys/class/infiniband/uroceN/...       a device's files, device_files.h
//   <tree>/dev/infiniband/uverbsN                empty regular files, to be listed; opening and
//                                                looking at them is the preloaded library's
//                                                business: a character device 1:3, as `dev` says
//   the same places                              links to what the kernel has there itself
//                                                (kernel_rdma.h); our numbers N follow its
//   <tree>/counters/uroceN                       a link to what the port counts, which outlives
//                                                the tree (counters_file)
//   <tree>/in-use                                lock file, below; its time is when the tree was
//                                                prepared last
//
// so SYSFS_PATH is <tree>/sys. Paths under /sys and /dev map by putting <tree> in front.
//
// A tree is named after what its devices are, so programs started alike share one, and its GID
// files are the one truth about which index an address has. How it stays consistent: changes are
// made under the lock `trees.lock` beside it; a new tree is written aside and renamed into place,
// so a tree that can be seen is complete; a file of an existing tree is replaced by rename. Who
// has a device open holds `in-use` shared (hold_device_tree). While somebody does, no index moves;
// the next `uroce run` after that starts with a fresh order. Trees that nobody needs any more are
// removed (unused_trees.h).
//
// libibverbs takes a device for a new one when the directory class/infiniband/uroceN changes its
// mtime: nothing is ever added or replaced directly in it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "host/device_files.h"
#include "host/device_table.h"
#include "host/files.h"
#include "host/kernel_rdma.h"
#include "host/runtime_dir.h"

namespace uroce::host {

// Makes the tree for these devices, or makes the one that exists whole and brings it up to date;
// its path.
[[nodiscard]] Result<std::string> prepare_device_tree(const RuntimeDirectory& directory,
                                                      const std::vector<Device>& devices,
                                                      const KernelRdma& kernel = {});

// For a running program, when addresses or links have changed: whether any file was changed. Does
// not wait: ETIMEDOUT while another program changes the trees; EAGAIN, EMFILE, ENFILE without a
// descriptor to read them with; ENOENT when somebody has removed it.
[[nodiscard]] Result<bool> update_gids(const std::string& tree, const HostNetwork& network);

// While the descriptor is open, GID indices of the tree do not move. A forked child must close it.
struct HeldTree {
  std::string path;
  posix::Descriptor hold;
};
[[nodiscard]] Result<HeldTree> hold_device_tree(const std::string& tree);

// Our devices. Only of a held tree: between reading and holding the indices could move.
[[nodiscard]] Result<std::vector<TreeDevice>> read_device_tree(const HeldTree& tree);

// Beside the trees: what all engines of a port on that interface (empty: none of the kernel's) have
// counted (port_counters.h). Another layout has another name.
[[nodiscard]] std::string counters_file(const std::string& netdev, std::uint64_t node_guid);

// For who manages trees as such.
[[nodiscard]] std::string in_use_file(const std::string& tree);
[[nodiscard]] std::string trees_lock_file(const std::string& network_path);

}  // namespace uroce::host
