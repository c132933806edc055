// SPDX-License-Identifier: BSD-2-Clause
// The kernel's network interfaces in this network namespace, as rtnetlink and ethtool tell them.
// (/sys/class/net is not asked: it shows the namespace in which it was mounted.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/addresses.h"

namespace uroce::host {

struct InterfaceAddress {
  PrefixAddress address;
  bool usable = true;    // false: duplicate address detection failed or has not ended
  bool pending = false;  // not usable, but will be in a moment
};

struct Interface {
  std::string name;
  int index = 0;
  MacAddress mac{};
  std::uint32_t mtu_bytes = 0;
  std::uint32_t megabits_per_second = 0;  // 0: not known
  bool up = false;                        // set up by the administrator
  bool running = false;                   // and there is a carrier
  bool loopback = false;
  std::string kind;  // "veth", "bridge" ...; empty for hardware
  std::vector<InterfaceAddress> addresses;
};

struct HostNetwork {
  std::vector<Interface> interfaces;  // in order of their index
  std::string default_route;          // name of the interface it leaves by; empty: no such route

  [[nodiscard]] const Interface* find(std::string_view name) const;
  // The one with this index (0: none has it), whatever it is called by now; else by name.
  [[nodiscard]] const Interface* find(int index, std::string_view name) const;
};

[[nodiscard]] Result<HostNetwork> read_host_network();

// IPv6 addresses of a running interface take a second or two until duplicate address detection
// lets them be used. Waits for that, so that GID indices do not depend on how soon after
// `ip link set up` a program starts. Gives up quietly.
void wait_for_pending_addresses(HostNetwork& network, const std::vector<std::string>& names);

}  // namespace uroce::host
