// SPDX-License-Identifier: BSD-2-Clause
#include "host/device_table.h"

#include <algorithm>
#include <cerrno>

#include "host/gid_table.h"
#include "host/hash.h"

namespace uroce::host {
namespace {

// MTU of a port that the kernel does not own, until the port itself says better.
constexpr std::uint32_t kDefaultMtuBytes = 1500;

bool is_vendor_unique(const MacAddress& mac) {
  const bool locally_made = (mac[0] & 0x02) != 0, group = (mac[0] & 0x01) != 0;
  return mac != MacAddress{} && !locally_made && !group;
}

// RFC 4291 appendix A: ff:fe in the middle, the universal/local bit turned over.
std::uint64_t guid_of_mac(const MacAddress& mac) {
  const std::array<std::uint8_t, 8> bytes = {
      static_cast<std::uint8_t>(mac[0] ^ 0x02), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  std::uint64_t guid = 0;
  for (const std::uint8_t byte : bytes) guid = guid << 8 | byte;
  return guid;
}

std::uint64_t guid_of_host(const HostIdentity& identity, const Device& device) {
  Hash hash;
  hash.add(identity.machine_id).add(identity.boot_id).add(identity.network_namespace);
  hash.add(device.netdev.empty() ? device.name : device.netdev).add(format_mac(device.mac));
  if (device.netdev.empty()) {
    for (const Gid& gid : device.gids) hash.add(format_gid(gid));
  }
  // The universal bit off: this number is made up here. The last bit on: it is not zero.
  return (hash.value() & ~(std::uint64_t{0x02} << 56)) | 1;
}

void assign_guid(Device& device, const std::vector<Device>& others, const HostIdentity& identity) {
  device.node_guid = is_vendor_unique(device.mac) ? guid_of_mac(device.mac) : 0;
  const bool taken =
      std::ranges::find(others, device.node_guid, &Device::node_guid) != others.end();
  // A bridge, a VLAN or a bond shares the MAC address of its port.
  if (device.node_guid == 0 || taken) device.node_guid = guid_of_host(identity, device);
}

std::string known_interfaces(const HostNetwork& network) {
  std::vector<std::string> names;
  for (const Interface& interface : network.interfaces) names.push_back(interface.name);
  return join(names, ", ");
}

std::vector<std::string> every_netdev(const HostNetwork& network) {
  std::vector<std::string> names;
  for (const Interface& interface : network.interfaces) {
    if (interface.up && !interface.addresses.empty()) names.push_back(interface.name);
  }
  // The one that would be alone without configuration is uroce0, and lo comes last.
  std::ranges::stable_sort(names, {}, [&](const std::string& name) {
    return name == network.default_route ? 0 : network.find(name)->loopback ? 2 : 1;
  });
  return names;
}

Result<std::vector<std::string>> automatic_netdev(const HostNetwork& network) {
  if (network.find(network.default_route) != nullptr) {
    return std::vector<std::string>{network.default_route};
  }
  const auto lo = std::ranges::find_if(network.interfaces, &Interface::loopback);
  if (lo == network.interfaces.end()) {
    return Error{ENODEV, "there is no default route and no loopback interface to put a device on"};
  }
  return std::vector<std::string>{lo->name};
}

Error no_interface(const std::string& name, const HostNetwork& network) {
  return Error{ENODEV, "there is no interface " + name + " in this network namespace, which has " +
                           known_interfaces(network)};
}

std::string interface_in(const std::string& spec) {
  constexpr std::string_view kInterface = "iface=";
  for (const std::string& argument : split(spec, ',')) {
    if (argument.starts_with(kInterface)) return argument.substr(kInterface.size());
  }
  return {};
}

// "net_af_packet0,iface=eth0": the interface is still the kernel's, and so are its addresses.
Result<std::vector<std::string>> netdev_of_port(const std::string& spec,
                                                const HostNetwork& network) {
  const std::string name = interface_in(spec);
  if (network.find(name) != nullptr) return std::vector<std::string>{name};
  // af_packet and af_xdp sit on an interface; what net_tap names, it makes.
  if (spec.starts_with("net_af_")) {
    if (!name.empty()) return no_interface(name, network);
    return Error{EINVAL, "dpdk:" + spec + ": say which interface, as in " +
                             spec.substr(0, spec.find(',')) + ",iface=eth0"};
  }
  return Error{EINVAL, "dpdk:" + spec +
                           " names no interface of the kernel, so it needs --address IP/PLEN (or "
                           "--netdev, where it drives an interface that has addresses)"};
}

Device device_on(const Interface& interface) {
  Device device;
  device.netdev = interface.name;
  device.interface_index = interface.index;
  device.mac = interface.mac;
  device.mtu_bytes = interface.mtu_bytes;
  device.megabits_per_second = interface.megabits_per_second;
  device.active = interface.running;
  device.gids = gids_in_order(interface.addresses);
  return device;
}

Device device_without_interface(const Config& config) {
  Device device;
  device.mtu_bytes = kDefaultMtuBytes;
  device.active = true;
  std::vector<InterfaceAddress> addresses;
  for (const PrefixAddress& address : config.addresses) {
    addresses.push_back({.address = address});
  }
  device.gids = gids_in_order(addresses);
  return device;
}

}  // namespace

Result<std::vector<std::string>> chosen_netdevs(const Config& config, const HostNetwork& network) {
  if (!config.addresses.empty()) return std::vector<std::string>{};
  for (const std::string& name : config.netdevs) {
    if (network.find(name) == nullptr) return no_interface(name, network);
  }
  if (!config.netdevs.empty()) return config.netdevs;
  if (config.uplink.kind == UplinkKind::kDpdk) {
    return netdev_of_port(config.uplink.dpdk_spec, network);
  }
  if (!config.all_netdevs) return automatic_netdev(network);
  std::vector<std::string> names = every_netdev(network);
  if (names.empty()) {
    return Error{ENODEV, "no interface is up and has an address, so 'netdev = all' chooses none"};
  }
  return names;
}

// Every interface that is up has a link-local address, so that one alone says nothing.
std::vector<std::string> passed_over(const Config& config, const HostNetwork& network) {
  const bool is_chosen = !config.netdevs.empty() || config.all_netdevs ||
                         !config.addresses.empty() || config.uplink.kind == UplinkKind::kDpdk;
  if (is_chosen || network.find(network.default_route) != nullptr) return {};
  std::vector<std::string> names;
  for (const Interface& interface : network.interfaces) {
    const bool has_address = std::ranges::any_of(
        interface.addresses,
        [](const InterfaceAddress& address) { return !address.address.gid.is_link_local(); });
    if (interface.running && !interface.loopback && has_address) names.push_back(interface.name);
  }
  return names;
}

Result<std::vector<Device>> make_device_table(const Config& config, const HostNetwork& network,
                                              const HostIdentity& identity) {
  const Result<std::vector<std::string>> netdevs = chosen_netdevs(config, network);
  if (!netdevs) return netdevs.error();
  std::vector<Device> devices;
  for (const std::string& name : *netdevs) devices.push_back(device_on(*network.find(name)));
  if (devices.empty()) devices.push_back(device_without_interface(config));
  std::vector<Device> table;
  for (Device& device : devices) {
    device.name = "uroce" + std::to_string(table.size());
    assign_guid(device, table, identity);
    table.push_back(std::move(device));
  }
  return table;
}

}  // namespace uroce::host
