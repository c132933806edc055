// SPDX-License-Identifier: BSD-2-Clause
// Opens a DPDK port as a datapath. DPDK and all that it brings (some thirty libraries, threads, a
// memory allocator) live in a module of their own, liburoce-dpdk.so, which this loads when the
// first port is asked for, from where the calling library lies or was installed. A program that
// does not ask pays nothing.
//
//   auto port = open_dpdk({.spec = "net_af_packet,iface=eth0", .addresses = addresses});
//   if (!port) return port.error();           // one line: what, and why
//   engine.add(std::move(port->datapath));
//
// Wrong: opening in a forked child of a process that did; DPDK cannot be started twice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "datapath/neighbour/address.h"
#include "uroce/datapath.h"

namespace uroce::datapath {

struct DpdkOptions {
  // A virtual device with its arguments ("net_memif,role=server,socket=/run/m.sock"), or a PCI
  // address ("0000:03:00.0"); what follows "dpdk:" in the configuration.
  std::string spec;
  // The kernel's interface that the device is on, or empty: the default of the argument `iface`.
  std::string interface = {};
  // Packets to other addresses are not ours. For an interface that the kernel owns this may be
  // empty: then all are. Where nobody owns the port, these are the addresses that it answers for.
  std::vector<InterfaceAddress> addresses = {};
  bool verify_icrc = true;               // of what is received; what is sent always carries one
  DatapathCounters* counters = nullptr;  // where it counts, outliving it; null: its own
};

struct DpdkPort {
  std::unique_ptr<Datapath> datapath;
  MacAddress mac;
  std::uint16_t mtu_bytes = 0;
  bool kernel_owned = false;   // of an interface with an address of its own
  std::string interface_name;  // of that interface, else empty
};

[[nodiscard]] Result<DpdkPort> open_dpdk(const DpdkOptions& options);

// What crosses the module's one symbol. Loader and module come from one build; the number tells a
// stale module of an older installation before it can do harm.
struct DpdkOpenRequest {
  static constexpr std::uint32_t kInterfaceVersion = 4;
  std::uint32_t interface_version = kInterfaceVersion;
  const DpdkOptions* options = nullptr;
  DpdkPort port;
  Error error;
};
using DpdkOpenFunction = bool (*)(DpdkOpenRequest* request);
inline constexpr const char* kDpdkOpenSymbol = "uroce_dpdk_open";

}  // namespace uroce::datapath
