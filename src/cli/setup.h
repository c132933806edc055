// SPDX-License-Identifier: BSD-2-Clause
// From the command line to what a program would see: configuration, network, devices.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "host/config.h"
#include "host/device_table.h"
#include "host/device_tree.h"
#include "host/environment.h"
#include "host/interfaces.h"

namespace uroce::cli {

struct Setup {
  std::string config_file;  // empty: none
  host::Config config;
  host::HostNetwork network;
  std::vector<host::Device> devices;
};

[[nodiscard]] Result<host::Config> resolve_config(const Arguments& arguments,
                                                  const host::Environment& environment);
[[nodiscard]] Result<Setup> resolve_setup(const Arguments& arguments,
                                          const host::Environment& environment);

// Why the device reaches no other host though it could, and what to do; empty where it is not so.
struct LoopbackHint {
  std::string what, advice;
};
[[nodiscard]] LoopbackHint loopback_hint(const Setup& setup);

struct PreparedTree {
  host::RuntimeDirectory directory;
  std::string path;
};
[[nodiscard]] Result<PreparedTree> prepare_tree(const Setup& setup,
                                                const host::Environment& environment);

}  // namespace uroce::cli
