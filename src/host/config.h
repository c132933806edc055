// SPDX-License-Identifier: BSD-2-Clause
// What a user can configure, and which source wins: flag, then environment, then file, then
// default. A source hands in assignments (key, value, and how to name the place in an error); the
// one table of keys knows how to read and write each value. The provider sees the environment
// only, so `uroce run` exports the resolved configuration as variables.
//
//   std::vector<Assignment> assignments = ...file...;            // lowest priority first
//   append(assignments, assignments_from(current_environment()));
//   Result<Config> config = resolve_config(assignments);
//
// Wrong: reading a UROCE_ variable anywhere else; its value would escape the checks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "datapath/tap/fault_spec.h"
#include "host/addresses.h"
#include "host/environment.h"

namespace uroce::host {

enum class UplinkKind { kUdp, kNone, kDpdk };

// How packets leave the host.
struct Uplink {
  UplinkKind kind = UplinkKind::kUdp;
  std::string dpdk_spec;  // a vdev with its arguments, or a PCI address
  friend bool operator==(const Uplink&, const Uplink&) = default;
};

enum class LogLevel { kOff, kError, kWarn, kInfo, kDebug, kTrace };

struct Config {
  Uplink uplink;
  bool all_netdevs = false;              // every interface that is up and has an address
  std::vector<std::string> netdevs;      // one device each, in this order; empty: automatic
  std::vector<PrefixAddress> addresses;  // of a port that the kernel does not own
  bool local = true;                     // shared memory to peers on this host
  LogLevel log_level = LogLevel::kWarn;
  std::uint16_t udp_port = 4791;     // IBTA annex 17: the port of RoCE v2
  bool verify_icrc = true;           // off: a packet with a wrong ICRC is taken all the same
  datapath::tap::FaultSpec fault{};  // what befalls received packets on purpose
  std::string pcap;                  // file for a capture of all packets; empty: none
  friend bool operator==(const Config&, const Config&) = default;
};

struct Assignment {
  std::string key;    // as in the file: "uplink"
  std::string value;  // as text, lists separated by commas
  std::string place;  // "UROCE_LOCAL=maybe", "/etc/uroce.toml:3: local = maybe"
};

struct ConfigKey {
  std::string_view name;      // in the file; the flag is "--" + name
  std::string_view variable;  // "UROCE_UPLINK"
  std::string_view placeholder;
  std::string_view help;
  // Nothing when the value is good, else what was expected.
  std::string (*parse)(std::string_view value, Config& config);
  std::string (*format)(const Config& config);
};

[[nodiscard]] std::span<const ConfigKey> config_keys();

[[nodiscard]] std::vector<Assignment> assignments_from(const Environment& environment);

// Later assignments win. Every bad value is reported, one line each, also where a later one
// would have hidden it.
[[nodiscard]] Result<Config> resolve_config(std::span<const Assignment> lowest_first);

// What the provider uses: environment and defaults.
[[nodiscard]] Result<Config> config_from(const Environment& environment);

// Sets every UROCE_ variable of the table, so that `config_from(environment)` gives `config`.
void export_config(const Config& config, Environment& environment);

[[nodiscard]] std::string format_uplink(const Uplink& uplink);

}  // namespace uroce::host
