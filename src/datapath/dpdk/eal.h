// SPDX-License-Identifier: BSD-2-Clause
// DPDK's environment abstraction layer, started once for the process when its first port is opened.
//
// What it does to a process by default, and what is done about it here:
//  - it pins the calling thread, so it is started on a thread of our own, and its one "lcore" may
//    run on every CPU that we may;
//  - its threads take signals: all are blocked in the thread that starts it;
//  - it wants hugepages, root and a runtime directory: hugepages are used where enough are free,
//    in memory, without a file; else ordinary memory;
//  - it loads every driver there is: only the mempool's, then the port's, unless PCI asks for all;
//  - it can be started once, by one user, and does not survive a fork: refused in so many words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "datapath/dpdk/port_spec.h"

namespace uroce::datapath {

// The arguments of `rte_eal_init`; pure, for the tests.
struct EalSettings {
  std::vector<unsigned> cpus;  // that the process may run on; not empty
  bool hugepages = false;
  bool pci = false;
};
[[nodiscard]] std::vector<std::string> eal_arguments(const EalSettings& settings);

// DPDK names its drivers by the version of its binary interface: 23 from 22.11 until 23.07.
[[nodiscard]] std::string driver_file(const std::string& library);

// Starts it if it does not run yet. Threads: any; takes a lock of its own.
[[nodiscard]] std::optional<Error> start_eal(const PortSpec& port);

}  // namespace uroce::datapath
