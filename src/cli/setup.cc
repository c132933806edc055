// SPDX-License-Identifier: BSD-2-Clause
#include "cli/setup.h"

#include <cerrno>
#include <utility>

#include "datapath/dpdk_drivers.h"
#include "host/config_file.h"
#include "host/host_identity.h"
#include "host/unused_trees.h"

namespace uroce::cli {
namespace {

void append(std::vector<host::Assignment>& target, std::vector<host::Assignment> more) {
  for (host::Assignment& assignment : more) target.push_back(std::move(assignment));
}

}  // namespace

Result<host::Config> resolve_config(const Arguments& arguments,
                                    const host::Environment& environment) {
  const std::string file =
      arguments.config_file.empty() ? host::find_config_file(environment) : arguments.config_file;
  std::vector<host::Assignment> assignments;
  if (!file.empty()) {
    Result<std::vector<host::Assignment>> from_file = host::read_config_file(file);
    if (!from_file) return from_file.error();
    assignments = std::move(*from_file);
  }
  append(assignments, host::assignments_from(environment));
  append(assignments, arguments.flags);
  return host::resolve_config(assignments);
}

Result<Setup> resolve_setup(const Arguments& arguments, const host::Environment& environment) {
  Setup setup;
  setup.config_file =
      arguments.config_file.empty() ? host::find_config_file(environment) : arguments.config_file;
  const Result<host::Config> config = resolve_config(arguments, environment);
  if (!config) return config.error();
  setup.config = *config;
  if (setup.config.uplink.kind == host::UplinkKind::kDpdk) {
    std::string trouble = datapath::why_no_dpdk_device(setup.config.uplink.dpdk_spec);
    if (!trouble.empty()) return Error{EINVAL, std::move(trouble)};
  }
  Result<host::HostNetwork> network = host::read_host_network();
  if (!network) return network.error();
  setup.network = std::move(*network);
  const Result<std::vector<std::string>> netdevs =
      host::chosen_netdevs(setup.config, setup.network);
  if (!netdevs) return netdevs.error();
  host::wait_for_pending_addresses(setup.network, *netdevs);
  Result<std::vector<host::Device>> devices =
      host::make_device_table(setup.config, setup.network, host::read_host_identity());
  if (!devices) return devices.error();
  setup.devices = std::move(*devices);
  return setup;
}

LoopbackHint loopback_hint(const Setup& setup) {
  const std::vector<std::string> others = host::passed_over(setup.config, setup.network);
  if (others.empty()) return {};
  return {"there is no default route, so the device is on lo and reaches this host only; " +
              host::join(others, ", ") + (others.size() == 1 ? " is" : " are") +
              " up with an address",
          "for peers elsewhere: --netdev " + others.front()};
}

Result<PreparedTree> prepare_tree(const Setup& setup, const host::Environment& environment) {
  Result<host::RuntimeDirectory> directory =
      host::open_runtime_directory(environment, host::read_host_identity().network_namespace);
  if (!directory) return directory.error();
  Result<std::string> tree =
      host::prepare_device_tree(*directory, setup.devices, host::read_kernel_rdma());
  if (!tree) return tree.error();
  host::remove_unused_trees(*directory);
  return PreparedTree{*directory, *tree};
}

}  // namespace uroce::cli
