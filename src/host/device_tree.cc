// SPDX-License-Identifier: BSD-2-Clause
#include "host/device_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "host/hash.h"
#include "host/port_counters.h"

namespace uroce::host {
namespace {

constexpr mode_t kDirectoryMode = 0755;
constexpr std::string_view kVerbsClass = "/sys/class/infiniband_verbs";
constexpr std::string_view kDeviceClass = "/sys/class/infiniband";
constexpr std::string_view kMiscClass = "/sys/class/misc";
constexpr std::string_view kNodes = "/dev/infiniband";
constexpr std::string_view kRdmaCmAbi = "4\n";
constexpr std::string_view kInUse = "/in-use";
constexpr std::string_view kCounters = "/counters";

// IB_USER_VERBS_ABI_VERSION, and our own provider's.
constexpr std::string_view kVerbsAbi = "6\n", kDeviceAbi = "1\n";
// /dev/null: a node that everybody has and may open.
constexpr std::string_view kNodeNumber = "1:3\n";

std::string below(const std::string& tree, std::string_view part, std::string_view name = {}) {
  std::string path = tree;
  path.append(part);
  if (!name.empty()) path.append("/").append(name);
  return path;
}

std::string tree_name(const std::vector<Device>& devices, const KernelRdma& kernel) {
  Hash hash;
  hash.add(UROCE_VERSION).add(GidTable::kLength).add(kRdmaCmAbi).add(sizeof(PortCounters));
  for (const Device& device : devices) {
    hash.add(device.name).add(device.netdev).add(device.node_guid);
    hash.add(static_cast<std::uint64_t>(device.interface_index)).add(format_mac(device.mac));
    hash.add(device.megabits_per_second);
  }
  for (const std::string& path : kernel.paths) hash.add(path);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "/tree-%016llx",
                static_cast<unsigned long long>(hash.value()));
  return text.data();
}

Result<Done> write_uverbs(const std::string& tree, const Device& device, std::size_t number) {
  const std::string name = "uverbs" + std::to_string(number);
  const std::string path = below(tree, kVerbsClass, name);
  if (Result<Done> r = make_directories(path, kDirectoryMode); !r) return r;
  if (Result<Done> r = write_missing_file(path + "/ibdev", device.name + "\n"); !r) return r;
  if (Result<Done> r = write_missing_file(path + "/dev", kNodeNumber); !r) return r;
  if (Result<Done> r = write_missing_file(path + "/abi_version", kDeviceAbi); !r) return r;
  return write_missing_file(below(tree, kNodes, name), "");
}

Result<Done> write_rdma_cm(const std::string& tree) {
  const std::string folder = below(tree, kMiscClass, "rdma_cm");
  if (Result<Done> r = make_directories(folder, kDirectoryMode); !r) return r;
  if (Result<Done> r = write_missing_file(folder + "/abi_version", kRdmaCmAbi); !r) return r;
  return write_missing_file(below(tree, kNodes, "rdma_cm"), "");
}

Result<Done> link_to_kernel(const std::string& tree, const KernelRdma& kernel) {
  for (const std::string& path : kernel.paths) {
    if (path.ends_with("/rdma_cm")) continue;  // there is one manager, which knows our devices
    if (symlink((kernel.root + path).c_str(), (tree + path).c_str()) != 0 && errno != EEXIST) {
      return system_error(tree + path, "cannot be linked");
    }
  }
  return Done{};
}

// Dangling until somebody counts.
Result<Done> link_counters(const std::string& tree, const Device& device) {
  const std::string path = below(tree, kCounters, device.name);
  const std::string target = "../../" + counters_file(device.netdev, device.node_guid);
  if (symlink(target.c_str(), path.c_str()) == 0 || errno == EEXIST) return Done{};
  return system_error(path, "cannot be linked");
}

// Writes what is missing; addresses and states come after.
Result<Done> complete_tree(const std::string& tree, const std::vector<Device>& devices,
                           const KernelRdma& kernel) {
  for (const std::string_view part : {kVerbsClass, kDeviceClass, kNodes, kCounters}) {
    if (Result<Done> r = make_directories(below(tree, part), kDirectoryMode); !r) return r;
  }
  const std::string verbs_abi = below(tree, kVerbsClass, "abi_version");
  if (Result<Done> r = write_missing_file(verbs_abi, kVerbsAbi); !r) return r;
  if (Result<Done> r = write_rdma_cm(tree); !r) return r;
  if (Result<Done> r = write_missing_file(in_use_file(tree), ""); !r) return r;
  if (Result<Done> r = link_to_kernel(tree, kernel); !r) return r;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::size_t number = kernel.first_free_uverbs + i;
    if (Result<Done> r = write_uverbs(tree, devices[i], number); !r) return r;
    const std::string path = below(tree, kDeviceClass, devices[i].name);
    if (Result<Done> r = complete_device_files(path, devices[i]); !r) return r;
    if (Result<Done> r = link_counters(tree, devices[i]); !r) return r;
  }
  return Done{};
}

Result<Done> fill_device(const std::string& tree, const Device& device, GidTable gids) {
  gids.update(device.gids);
  const std::string path = below(tree, kDeviceClass, device.name);
  const Result<bool> r = update_device_files(path, device.netdev, gids, device.active);
  if (!r) return r.error();
  return Done{};
}

Result<Done> write_tree(const std::string& tree, const std::vector<Device>& devices,
                        const KernelRdma& kernel) {
  if (Result<Done> r = complete_tree(tree, devices, kernel); !r) return r;
  for (const Device& device : devices) {
    if (Result<Done> r = fill_device(tree, device, {}); !r) return r;
  }
  return Done{};
}

// Written aside; a crash leaves a ".new" directory, which the next one to come removes.
Result<Done> make_tree(const std::string& tree, const std::vector<Device>& devices,
                       const KernelRdma& kernel) {
  const std::string aside = tree + ".new";
  remove_tree(aside);
  Result<Done> written = write_tree(aside, devices, kernel);
  if (written && rename(aside.c_str(), tree.c_str()) != 0) {
    written = system_error(tree, "cannot be put into place");
  }
  if (!written) remove_tree(aside);
  return written;
}

Result<bool> is_in_use(const std::string& tree) {
  const Result<posix::Descriptor> lock = try_lock_file(in_use_file(tree), LockKind::kExclusive);
  if (!lock) return lock.error();
  return !lock->is_open();
}

// Somebody may have removed files of it.
Result<Done> refresh_tree(const std::string& tree, const std::vector<Device>& devices,
                          const KernelRdma& kernel) {
  const Result<bool> in_use = is_in_use(tree);
  if (!in_use) return in_use.error();
  if (Result<Done> r = complete_tree(tree, devices, kernel); !r) return r;
  if (utimensat(AT_FDCWD, in_use_file(tree).c_str(), nullptr, 0) != 0) {
    return system_error(tree, "cannot be changed");
  }
  for (const Device& device : devices) {
    const std::string path = below(tree, kDeviceClass, device.name);
    const GidTable gids = *in_use ? read_device_files(path, device.name).gids : GidTable{};
    if (Result<Done> r = fill_device(tree, device, gids); !r) return r;
  }
  return Done{};
}

bool is_file_at(int descriptor, const std::string& path) {
  struct stat opened {
  }, there{};
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

// The file's time is when the folder was used last; a folder that is not used for long goes away,
// perhaps while we wait.
Result<posix::Descriptor> lock_trees(const std::string& directory,
                                     Duration patience = kLockPatience) {
  const std::string path = trees_lock_file(directory);
  Result<posix::Descriptor> lock = lock_file(path, LockKind::kExclusive, patience);
  if (!lock) return lock;
  if (futimens(lock->get(), nullptr) != 0) return system_error(path, "cannot be changed");
  if (!is_file_at(lock->get(), path)) {
    return Error{EAGAIN, directory + ": was removed at this moment, for it was unused; try again"};
  }
  return lock;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The kernel's are links.
std::vector<std::string> own_devices(const std::string& tree) {
  std::vector<std::string> names = list_directory(below(tree, kDeviceClass));
  std::erase_if(names, [&](const std::string& name) {
    struct stat status {};
    const std::string path = below(tree, kDeviceClass, name);
    return lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode);
  });
  return names;
}

Result<bool> update_device(const std::string& tree, const std::string& name,
                           const HostNetwork& network) {
  const std::string path = below(tree, kDeviceClass, name);
  TreeDevice device = read_device_files(path, name);
  if (device.netdev.empty()) return false;  // its addresses are configured, not the kernel's
  // An interface that is gone takes its addresses along.
  const Interface* interface = network.find(device.interface_index, device.netdev);
  const bool active = interface != nullptr && interface->running;
  const std::string& netdev = interface == nullptr ? device.netdev : interface->name;
  device.gids.update(interface == nullptr ? std::vector<Gid>{}
                                          : gids_in_order(interface->addresses));
  return update_device_files(path, netdev, device.gids, active);
}

}  // namespace

std::string in_use_file(const std::string& tree) { return below(tree, kInUse); }

std::string counters_file(const std::string& netdev, std::uint64_t node_guid) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "counters-%zu-%016llx-%s", sizeof(PortCounters),
                static_cast<unsigned long long>(node_guid), netdev.c_str());
  return text.data();
}

std::string trees_lock_file(const std::string& network_path) {
  return network_path + "/trees.lock";
}

Result<std::string> prepare_device_tree(const RuntimeDirectory& directory,
                                        const std::vector<Device>& devices,
                                        const KernelRdma& kernel) {
  const Result<posix::Descriptor> lock = lock_trees(directory.network_path);
  if (!lock) return lock.error();
  const std::string tree = directory.network_path + tree_name(devices, kernel);
  const Result<Done> done =
      exists(tree) ? refresh_tree(tree, devices, kernel) : make_tree(tree, devices, kernel);
  if (!done) return done.error();
  return tree;
}

Result<bool> update_gids(const std::string& tree, const HostNetwork& network) {
  const Result<posix::Descriptor> lock = lock_trees(parent_of(tree), Duration{});
  if (!lock) return lock.error();
  const std::vector<std::string> names = own_devices(tree);
  if (names.empty()) {
    if (!exists(below(tree, kDeviceClass))) return Error{ENOENT, tree + ": was removed"};
    return Error{EAGAIN, tree + ": cannot be read now"};
  }
  bool changed = false;
  for (const std::string& name : names) {
    const Result<bool> r = update_device(tree, name, network);
    if (!r) return r;
    changed = changed || *r;
  }
  return changed;
}

Result<HeldTree> hold_device_tree(const std::string& tree) {
  Result<posix::Descriptor> hold = lock_file(in_use_file(tree), LockKind::kShared);
  if (!hold && hold.error().code == ENOENT) {
    return Error{ENOENT, tree + ": this device tree is gone; start with `uroce run` again"};
  }
  if (!hold) return hold.error();
  return HeldTree{tree, std::move(*hold)};
}

Result<std::vector<TreeDevice>> read_device_tree(const HeldTree& tree) {
  std::vector<TreeDevice> devices;
  for (const std::string& name : own_devices(tree.path)) {
    devices.push_back(read_device_files(below(tree.path, kDeviceClass, name), name));
  }
  if (devices.empty()) return Error{ENOENT, tree.path + ": not a device tree of uroce"};
  return devices;
}

}  // namespace uroce::host
