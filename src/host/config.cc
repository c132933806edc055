// SPDX-License-Identifier: BSD-2-Clause
#include "host/config.h"

#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "host/gid_table.h"

namespace uroce::host {
namespace {

constexpr std::string_view kDpdkPrefix = "dpdk:";
// The table of GIDs ends with a free entry, and has one for the link-local address.
constexpr std::size_t kAddressesMax = GidTable::kLength - 2;
constexpr std::array<std::string_view, 6> kLogLevels = {"off",  "error", "warn",
                                                        "info", "debug", "trace"};

std::string parse_uplink(std::string_view value, Config& config) {
  if (value == "udp") {
    config.uplink = {UplinkKind::kUdp, {}};
  } else if (value == "none") {
    config.uplink = {UplinkKind::kNone, {}};
  } else if (value.starts_with(kDpdkPrefix) && value.size() > kDpdkPrefix.size()) {
    config.uplink = {UplinkKind::kDpdk, std::string(value.substr(kDpdkPrefix.size()))};
  } else {
    return "expected udp, none or dpdk:SPEC, such as dpdk:net_af_packet0,iface=eth0";
  }
  return {};
}

bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() < IFNAMSIZ && name != "." && name != ".." &&
         name.find_first_of("/ \t\n:") == std::string_view::npos;
}

std::string parse_netdev(std::string_view value, Config& config) {
  std::vector<std::string> names = split(value, ',');
  config.all_netdevs = names.size() == 1 && names[0] == "all";
  config.netdevs.clear();
  if (config.all_netdevs) return {};
  for (const std::string& name : names) {
    if (!is_interface_name(name)) return "'" + name + "' cannot be the name of an interface";
    if (std::ranges::count(names, name) > 1) return "'" + name + "' is named twice";
  }
  config.netdevs = std::move(names);
  return {};
}

std::string format_netdev(const Config& config) {
  return config.all_netdevs ? "all" : join(config.netdevs, ",");
}

// IPv4: 0.0.0.0/8 is this network, 127.0.0.0/8 a loopback, from 224.0.0.0 on are groups and the
// broadcast (IANA IPv4 special-purpose registry). "::" is no address to begin with.
bool is_of_one_host(const Gid& gid) {
  constexpr std::uint8_t kLoopback = 127, kFirstOfGroups = 224;
  if (gid.is_ipv4()) {
    const std::uint8_t first = gid.bytes[12];
    return first != 0 && first != kLoopback && first < kFirstOfGroups;
  }
  Gid loopback;
  loopback.bytes.back() = 1;
  return !gid.is_multicast() && gid != loopback;
}

std::string parse_addresses(std::string_view value, Config& config) {
  config.addresses.clear();
  for (const std::string& text : split(value, ',')) {
    const std::optional<PrefixAddress> address = parse_prefix_address(text);
    if (!address) {
      return "'" + text + "' is not IP/PREFIX-LENGTH, such as 10.0.0.1/24 or fd00::1/64";
    }
    if (!is_of_one_host(address->gid)) {
      return "'" + text + "' is no address that a port can have: not of one host, or a loopback's";
    }
    const auto is_same = [&](const PrefixAddress& other) { return other.gid == address->gid; };
    if (std::ranges::any_of(config.addresses, is_same)) return "'" + text + "' is there twice";
    if (config.addresses.size() == kAddressesMax) {
      return "a port has " + std::to_string(kAddressesMax) + " addresses at most";
    }
    config.addresses.push_back(*address);
  }
  return {};
}

std::string format_addresses(const Config& config) {
  std::string text;
  for (const PrefixAddress& address : config.addresses) {
    if (!text.empty()) text += ',';
    text += format_prefix_address(address);
  }
  return text;
}

std::string parse_switch(std::string_view value, bool& target) {
  if (value != "on" && value != "off") return "expected on or off";
  target = value == "on";
  return {};
}

std::string parse_log_level(std::string_view value, Config& config) {
  const auto found = std::ranges::find(kLogLevels, value);
  if (found == kLogLevels.end()) return "expected off, error, warn, info, debug or trace";
  config.log_level = static_cast<LogLevel>(found - kLogLevels.begin());
  return {};
}

std::string parse_port(std::string_view value, Config& config) {
  std::uint16_t port = 0;
  const char* const last = value.data() + value.size();
  const auto [end, error] = std::from_chars(value.data(), last, port);
  if (error != std::errc{} || end != last || port == 0) return "expected a port, 1 to 65535";
  config.udp_port = port;
  return {};
}

std::string parse_icrc(std::string_view value, Config& config) {
  if (value != "verify" && value != "ignore") return "expected verify or ignore";
  config.verify_icrc = value == "verify";
  return {};
}

std::string parse_fault(std::string_view value, Config& config) {
  const Result<datapath::tap::FaultSpec> spec = datapath::tap::parse_fault_spec(value);
  if (!spec) return spec.error().message;
  config.fault = *spec;
  return {};
}

std::string parse_pcap(std::string_view value, Config& config) {
  config.pcap = value == "off" ? std::string_view{} : value;
  return {};
}

constexpr std::array<ConfigKey, 9> kKeys = {{
    {"uplink", "UROCE_UPLINK", "udp|none|dpdk:SPEC", "how packets leave this host", parse_uplink,
     [](const Config& c) { return format_uplink(c.uplink); }},
    {"netdev", "UROCE_NETDEV", "IF[,IF...]|all",
     "one device for each of these interfaces (default: that of the default route, else lo)",
     parse_netdev, format_netdev},
    {"address", "UROCE_ADDRESS", "IP/PLEN[,...]",
     "addresses of a port that the kernel does not own (dpdk, none)", parse_addresses,
     format_addresses},
    {"local", "UROCE_LOCAL", "on|off", "shared memory towards peers on this host",
     [](std::string_view value, Config& c) { return parse_switch(value, c.local); },
     [](const Config& c) { return std::string(c.local ? "on" : "off"); }},
    {"log", "UROCE_LOG", "LEVEL", "off, error, warn, info, debug or trace; to standard error",
     parse_log_level,
     [](const Config& c) {
       return std::string(kLogLevels[static_cast<std::size_t>(c.log_level)]);
     }},
    {"port", "UROCE_PORT", "N", "UDP port, for tests; every other RoCE v2 peer uses 4791",
     parse_port, [](const Config& c) { return std::to_string(c.udp_port); }},
    {"icrc", "UROCE_ICRC", "verify|ignore", "what to do about a received packet's wrong ICRC",
     parse_icrc, [](const Config& c) { return std::string(c.verify_icrc ? "verify" : "ignore"); }},
    {"fault", "UROCE_FAULT", "SPEC|off",
     "lose, duplicate, reorder, delay, corrupt received packets: loss=1%,delay=50us..2ms,seed=7",
     parse_fault, [](const Config& c) { return datapath::tap::format_fault_spec(c.fault); }},
    {"pcap", "UROCE_PCAP", "FILE|off", "capture all packets, for Wireshark; %p is the process id",
     parse_pcap, [](const Config& c) { return c.pcap; }},
}};

// A NUL would end the variable that brings the value to the provider, and others garble messages.
bool has_control_character(std::string_view value) {
  return std::ranges::any_of(value, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

const ConfigKey* find_key(std::string_view name) {
  const auto found = std::ranges::find(kKeys, name, &ConfigKey::name);
  return found == kKeys.end() ? nullptr : &*found;
}

std::string unknown_key() {
  std::string text = "no such key; there are";
  for (const ConfigKey& key : kKeys) text.append(&key == &kKeys[0] ? " " : ", ").append(key.name);
  return text;
}

// Rules between keys. `--address` with a kernel interface would be two owners for one port.
std::string check_together(const Config& config) {
  if (config.uplink.kind == UplinkKind::kNone && !config.local) {
    return "--uplink none with --local off reaches nobody: leave one of them out";
  }
  if (config.addresses.empty()) {
    const bool several = config.all_netdevs || config.netdevs.size() > 1;
    if (config.uplink.kind == UplinkKind::kDpdk && several) {
      return "a DPDK port makes one device, so --netdev can name only one interface";
    }
    return {};
  }
  if (config.uplink.kind == UplinkKind::kUdp) {
    return "--address is for ports that the kernel does not own; with --uplink udp give the "
           "interface its address by 'ip address add'";
  }
  if (config.all_netdevs || !config.netdevs.empty()) {
    return "--address and --netdev exclude each other: a port with addresses of its own is not "
           "an interface of the kernel";
  }
  return {};
}

}  // namespace

std::span<const ConfigKey> config_keys() { return kKeys; }

std::vector<Assignment> assignments_from(const Environment& environment) {
  std::vector<Assignment> result;
  for (const ConfigKey& key : kKeys) {
    const std::string value(variable(environment, key.variable));
    if (value.empty()) continue;
    result.push_back(
        {std::string(key.name), value, std::string(key.variable).append("=").append(value)});
  }
  return result;
}

Result<Config> resolve_config(std::span<const Assignment> lowest_first) {
  Config config;
  std::vector<std::string> problems;
  for (const Assignment& assignment : lowest_first) {
    const ConfigKey* key = find_key(assignment.key);
    const std::string reason = key == nullptr ? unknown_key()
                               : has_control_character(assignment.value)
                                   ? "a control character stands in it"
                                   : key->parse(assignment.value, config);
    if (!reason.empty()) problems.push_back(assignment.place + ": " + reason);
  }
  if (problems.empty()) {
    if (std::string reason = check_together(config); !reason.empty()) problems.push_back(reason);
  }
  if (!problems.empty()) return Error{EINVAL, join(problems, "\n")};
  return config;
}

Result<Config> config_from(const Environment& environment) {
  return resolve_config(assignments_from(environment));
}

void export_config(const Config& config, Environment& environment) {
  for (const ConfigKey& key : kKeys) {
    std::string value = key.format(config);
    if (value.empty()) {
      environment.erase(std::string(key.variable));
    } else {
      environment[std::string(key.variable)] = std::move(value);
    }
  }
}

std::string format_uplink(const Uplink& uplink) {
  switch (uplink.kind) {
    case UplinkKind::kUdp:
      return "udp";
    case UplinkKind::kNone:
      return "none";
    case UplinkKind::kDpdk:
      return std::string(kDpdkPrefix) + uplink.dpdk_spec;
  }
  return {};
}

}  // namespace uroce::host
