// SPDX-License-Identifier: BSD-2-Clause
// Which devices "dpdk:" can name. Here rather than in the module, because whoever reads the
// configuration says at once what is wrong with it, also where the module is not installed.
#pragma once

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

namespace uroce::datapath {

struct DpdkDriver {
  std::string_view name;
  int capability = -1;  // man 7 capabilities: what a process needs to open it; -1: nothing
  std::string_view capability_name = {};
};

inline constexpr std::array kDpdkDrivers{
    DpdkDriver{"net_af_packet", CAP_NET_RAW, "CAP_NET_RAW"},
    DpdkDriver{"net_af_xdp", CAP_NET_ADMIN, "CAP_NET_ADMIN"},
    DpdkDriver{"net_memif"},
    DpdkDriver{"net_tap", CAP_NET_ADMIN, "CAP_NET_ADMIN"},
    DpdkDriver{"net_ring"},
    DpdkDriver{"net_pcap"},
    DpdkDriver{"net_null"},
};

// Of "net_tap0,iface=x" the device, "net_tap0".
constexpr std::string_view dpdk_device(std::string_view spec) {
  return spec.substr(0, spec.find(','));
}

// nullptr: no virtual device that we know.
constexpr const DpdkDriver* find_dpdk_driver(std::string_view device) {
  const auto* found = std::ranges::find_if(
      kDpdkDrivers, [&](const DpdkDriver& driver) { return device.starts_with(driver.name); });
  return found == kDpdkDrivers.end() ? nullptr : found;
}

// [domain:]bus:device.function, all hexadecimal.
inline bool is_pci_address(std::string_view text) {
  const auto colons = std::ranges::count(text, ':');
  return (colons == 1 || colons == 2) && std::ranges::count(text, '.') == 1 &&
         std::ranges::all_of(
             text, [](unsigned char c) { return std::isxdigit(c) != 0 || c == ':' || c == '.'; });
}

// Empty when the device of `spec` is one that can be.
inline std::string why_no_dpdk_device(std::string_view spec) {
  const std::string device(dpdk_device(spec));
  if (is_pci_address(device) || find_dpdk_driver(device) != nullptr) return {};
  std::string names;
  for (const DpdkDriver& driver : kDpdkDrivers) {
    if (!names.empty()) names += ", ";
    names += driver.name;
  }
  return "dpdk:" + std::string(spec) + ": \"" + device + "\" is neither a PCI address nor one of " +
         names;
}

}  // namespace uroce::datapath
