// SPDX-License-Identifier: BSD-2-Clause
#include "host/device_files.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>

#include "host/port_attributes.h"
#include "host/port_counters.h"

namespace uroce::host {
namespace {

constexpr std::string_view kPort = "/ports/1/";
constexpr mode_t kDirectoryMode = 0755;
// IB_PORT_CM_SUP and IB_PORT_IP_BASED_GIDS, as the kernel's RoCE drivers say.
constexpr std::string_view kCapabilityMask = "0x04010000";

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

std::string_view state_text(bool active) { return active ? "4: ACTIVE\n" : "1: DOWN\n"; }
std::string_view phys_state_text(bool active) { return active ? "5: LinkUp\n" : "3: Disabled\n"; }

std::string gid_text(const Gid& gid) { return format_gid(gid) + "\n"; }
std::string ndev_text(const Gid& gid, const std::string& netdev) {
  return gid.is_zero() || netdev.empty() ? std::string{} : netdev + "\n";
}

std::string host_name() {
  std::array<char, 65> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// All processors as sysfs writes a mask: groups of 32, the highest first.
std::string processor_mask() {
  const long count = sysconf(_SC_NPROCESSORS_CONF);
  std::string text;
  for (long group = (count - 1) / 32; group >= 0; --group) {
    const long in_group = std::min(count - 32 * group, 32L);
    const auto mask = static_cast<unsigned>((1ULL << in_group) - 1);
    std::array<char, 16> digits{};
    std::snprintf(digits.data(), digits.size(), text.empty() ? "%x" : ",%08x", mask);
    text += digits.data();
  }
  return text;
}

NamedTexts device_texts(const Device& device) {
  const std::string guid = format_guid(device.node_guid);
  return {{"node_type", "1: CA"},
          {"node_guid", guid},
          {"sys_image_guid", guid},
          {"node_desc", device.name + " on " + host_name()},
          {"fw_ver", UROCE_VERSION},
          {"hca_type", "uroce"},
          {"hw_rev", "0x1"},
          {"board_id", "uroce"},
          {"device/numa_node", "-1"},
          {"device/local_cpus", processor_mask()},
          {"device/local_cpulist", read_line("/sys/devices/system/cpu/present")}};
}

NamedTexts port_texts(const Device& device) {
  return {{"rate", std::string(port_rate(device.megabits_per_second).text)},
          {"lid", "0x0"},
          {"sm_lid", "0x0"},
          {"lid_mask_count", "0"},
          {"sm_sl", "0"},
          {"cap_mask", std::string(kCapabilityMask)},
          {"link_layer", "Ethernet"},
          {"pkeys/0", "0xffff"}};
}

NamedTexts netdev_texts(const Device& device) {
  constexpr int kEthernetType = 1, kLoopbackType = 772;  // ARPHRD_ETHER, ARPHRD_LOOPBACK
  const bool loopback = device.mac == MacAddress{};
  return {{"ifindex", std::to_string(device.interface_index)},
          {"address", format_mac(device.mac)},
          {"type", std::to_string(loopback ? kLoopbackType : kEthernetType)},
          {"dev_id", "0x0"},
          {"dev_port", "0"}};
}

Result<Done> write_texts(const std::string& prefix, const NamedTexts& texts) {
  for (const auto& [name, text] : texts) {
    if (Result<Done> r = write_missing_file(prefix + name, text + "\n"); !r) return r;
  }
  return Done{};
}

// One text: one file, many names. What is there already may have been given another text.
Result<Done> write_repeated(const std::vector<std::string>& names, std::string_view text) {
  const std::string* written = nullptr;
  for (const std::string& name : names) {
    if (exists(name) || (written != nullptr && link(written->c_str(), name.c_str()) == 0)) continue;
    // The first, or a file system without hard links, or with a low limit on them.
    if (Result<Done> r = write_file(name, text); !r) return r;
    written = &name;
  }
  return Done{};
}

// For each place in a GID table.
Result<Done> write_numbered(const std::string& prefix, std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < GidTable::kLength; ++i) names.push_back(prefix + std::to_string(i));
  return write_repeated(names, text);
}

Result<Done> write_counters(const std::string& port) {
  std::vector<std::string> names;
  for (const PortCounter& counter : kPortCounters) {
    names.push_back(port + std::string(counter.folder) + "/" + std::string(counter.name));
  }
  if (Result<Done> r = write_repeated(names, kNotCounted); !r) return r;
  const std::string lifespan = port + std::string(kHardwareCounters) + "/" + std::string(kLifespan);
  return write_missing_file(lifespan, "0\n");
}

Result<Done> make_device_directories(const std::string& path, const Device& device) {
  std::vector<std::string> names = {
      "ports/1/gids",  "ports/1/gid_attrs/types", "ports/1/gid_attrs/ndevs",
      "ports/1/pkeys", "ports/1/counters",        "ports/1/hw_counters",
      "device/net"};
  if (!device.netdev.empty()) names.push_back("device/net/" + device.netdev);
  for (const std::string& name : names) {
    if (Result<Done> r = make_directories(path + "/" + name, kDirectoryMode); !r) return r;
  }
  return Done{};
}

Result<Done> write_empty_gid_table(const std::string& port) {
  if (Result<Done> r = write_numbered(port + "gids/", gid_text(Gid{})); !r) return r;
  if (Result<Done> r = write_numbered(port + "gid_attrs/types/", "RoCE v2\n"); !r) return r;
  return write_numbered(port + "gid_attrs/ndevs/", "");
}

// True when the file was different.
Result<bool> change_file(const std::string& path, std::string_view text) {
  if (read_file(path) == text) return false;
  if (Result<Done> r = replace_file(path, text); !r) return r.error();
  return true;
}

}  // namespace

Result<Done> complete_device_files(const std::string& path, const Device& device) {
  const std::string port = path + std::string(kPort);
  if (Result<Done> r = make_device_directories(path, device); !r) return r;
  if (Result<Done> r = write_texts(path + "/", device_texts(device)); !r) return r;
  if (Result<Done> r = write_texts(port, port_texts(device)); !r) return r;
  if (!device.netdev.empty()) {
    const std::string net = path + "/device/net/" + device.netdev + "/";
    if (Result<Done> r = write_texts(net, netdev_texts(device)); !r) return r;
  }
  if (Result<Done> r = write_empty_gid_table(port); !r) return r;
  return write_counters(port);
}

Result<bool> update_device_files(const std::string& path, const std::string& netdev,
                                 const GidTable& gids, bool active) {
  const std::string port = path + std::string(kPort);
  NamedTexts texts = {{"state", std::string(state_text(active))},
                      {"phys_state", std::string(phys_state_text(active))}};
  for (std::size_t i = 0; i < GidTable::kLength; ++i) {
    const Gid& gid = gids.slots()[i];
    texts.emplace_back("gid_attrs/ndevs/" + std::to_string(i), ndev_text(gid, netdev));
    texts.emplace_back("gids/" + std::to_string(i), gid_text(gid));
  }
  bool changed = false;
  for (const auto& [name, text] : texts) {
    const Result<bool> r = change_file(port + name, text);
    if (!r) return r;
    changed = changed || *r;
  }
  return changed;
}

TreeDevice read_device_files(const std::string& path, const std::string& name) {
  TreeDevice device;
  device.name = name;
  const std::vector<std::string> netdevs = list_directory(path + "/device/net");
  if (!netdevs.empty()) device.netdev = netdevs.front();
  const std::string index = read_line(path + "/device/net/" + device.netdev + "/ifindex");
  std::from_chars(index.data(), index.data() + index.size(), device.interface_index);
  std::string guid = read_line(path + "/node_guid");
  std::erase(guid, ':');
  std::from_chars(guid.data(), guid.data() + guid.size(), device.node_guid, 16);
  const std::string gids = path + std::string(kPort) + "gids/";
  for (std::size_t i = 0; i < GidTable::kLength; ++i) {
    const std::optional<Gid> gid = parse_gid(read_line(gids + std::to_string(i)));
    if (gid) device.gids.set_slot(i, *gid);
  }
  return device;
}

}  // namespace uroce::host
