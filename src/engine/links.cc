// SPDX-License-Identifier: BSD-2-Clause
#include "engine/links.h"

#include <cerrno>
#include <utility>

#include "datapath/directory/directory.h"
#include "datapath/dpdk_loader.h"
#include "datapath/shm/shm_datapath.h"
#include "datapath/tap/capture_datapath.h"
#include "datapath/tap/fault_datapath.h"
#include "datapath/udp/udp_datapath.h"
#include "engine/clock.h"
#include "engine/log_sink.h"
#include "host/config.h"
#include "host/device_tree.h"
#include "host/host_identity.h"
#include "host/runtime_dir.h"

namespace uroce::engine {
namespace {

// The directory, as the source of QPN blocks; it outlives the links, which look QPNs up in it.
class DirectoryBlocks final : public BlockSource {
 public:
  explicit DirectoryBlocks(std::unique_ptr<datapath::Directory> directory)
      : directory_(std::move(directory)) {}

  [[nodiscard]] datapath::Directory& directory() { return *directory_; }
  std::optional<std::uint32_t> claim_block() override { return directory_->claim_block(); }
  void release_block(std::uint32_t block) override { directory_->release_block(block); }
  void abandon_in_child() override { directory_->abandon_in_child(); }

 private:
  std::unique_ptr<datapath::Directory> directory_;
};

// Null, and the device counts for itself alone, where there is no room for more.
std::unique_ptr<CounterRow> open_counters(const std::string& folder, const host::TreeDevice& device,
                                          const datapath::Directory& directory) {
  const std::string file = folder + "/" + host::counters_file(device.netdev, device.node_guid);
  auto row = CounterRow::open(file, directory.own_slot().index);
  if (row) return std::move(*row);
  log(LogLevel::kWarn, device.name + ": is not in hw_counters: " + row.error().message);
  return nullptr;
}

DatapathCounters* of_link(const std::unique_ptr<CounterRow>& row, transport::LinkId link) {
  return row == nullptr ? nullptr : &row->counters().links[link];
}

Result<host::TreeDevice> find_device(const host::HeldTree& tree, const std::string& name) {
  auto devices = host::read_device_tree(tree);
  if (!devices) return devices.error();
  for (host::TreeDevice& device : *devices) {
    if (device.name == name) return std::move(device);
  }
  return Error{ENODEV, name + ": no such device in " + tree.path};
}

struct Uplink {
  std::unique_ptr<Datapath> datapath;
  std::uint32_t port_mtu_bytes = 0;  // of a port that is no interface of the kernel's; else 0
};

Result<Uplink> open_udp(datapath::Directory& directory, const host::Config& config,
                        const host::TreeDevice& device, const host::HostNetwork& network,
                        DatapathCounters* counters) {
  const host::Interface* interface = network.find(device.interface_index, device.netdev);
  if (interface == nullptr) {
    return Error{ENODEV, device.name + ": no interface " + device.netdev};
  }
  auto link = datapath::UdpDatapath::create(
      directory, {.interface = interface->name,
                  .interface_mtu = interface->mtu_bytes,
                  .port = config.udp_port,
                  .verify_icrc = config.verify_icrc,
                  .bits_per_second = std::uint64_t{interface->megabits_per_second} * 1'000'000,
                  .counters = counters});
  if (!link) return link.error();
  return Uplink{std::move(*link)};
}

Result<Uplink> open_dpdk_port(const host::Config& config, const host::TreeDevice& device,
                              const host::HostNetwork& network, DatapathCounters* counters) {
  const host::Interface* interface = network.find(device.interface_index, device.netdev);
  datapath::DpdkOptions options{.spec = config.uplink.dpdk_spec,
                                .interface = interface != nullptr ? interface->name : device.netdev,
                                .addresses = {},
                                .verify_icrc = config.verify_icrc,
                                .counters = counters};
  for (const host::PrefixAddress& address : config.addresses) {
    options.addresses.push_back({address.gid, address.prefix_length});
  }
  auto port = datapath::open_dpdk(options);
  if (!port) return port.error();
  return Uplink{std::move(port->datapath), port->mtu_bytes};
}

Result<Uplink> open_uplink(datapath::Directory& directory, const host::Config& config,
                           const host::TreeDevice& device, const host::HostNetwork& network,
                           DatapathCounters* counters) {
  switch (config.uplink.kind) {
    case host::UplinkKind::kUdp:
      return open_udp(directory, config, device, network, counters);
    case host::UplinkKind::kDpdk:
      return open_dpdk_port(config, device, network, counters);
    case host::UplinkKind::kNone:
      break;
  }
  return Uplink{};
}

// What was asked for is put round every link, faults inside of the capture: they are the network's.
// Without either nothing is in the way.
Result<std::unique_ptr<Datapath>> tapped(std::unique_ptr<Datapath> link, const host::Config& config,
                                         const std::string& device,
                                         std::shared_ptr<datapath::tap::CaptureFile> capture) {
  if (config.fault.is_active()) {
    auto faulty = datapath::tap::FaultDatapath::create(
        std::move(link), {.spec = config.fault, .clock = monotonic_now});
    if (!faulty) return faulty.error();
    link = std::move(*faulty);
  }
  if (capture == nullptr) return link;
  const std::string name = device + "-" + link->capabilities().name;
  return std::unique_ptr<Datapath>(new datapath::tap::CaptureDatapath(
      std::move(link), std::move(capture), name, wall_clock_now));
}

// Null where none was asked for.
Result<std::shared_ptr<datapath::tap::CaptureFile>> open_capture(const host::Config& config,
                                                                 const std::string& device) {
  if (config.pcap.empty()) return std::shared_ptr<datapath::tap::CaptureFile>{};
  auto file = datapath::tap::CaptureFile::open(config.pcap, device);
  if (!file) return file.error();
  log((*file)->is_second_choice() ? LogLevel::kWarn : LogLevel::kInfo,
      device + ": the capture is in " + (*file)->path());
  return file;
}

}  // namespace

Result<EngineParts> make_parts(const std::string& device, const host::Environment& environment) {
  const std::string path(host::variable(environment, "UROCE_TREE"));
  if (path.empty()) return Error{ENODEV, "UROCE_TREE is not set: start with `uroce run`"};
  auto config = host::config_from(environment);
  if (!config) return config.error();
  auto tree = host::hold_device_tree(path);
  if (!tree) return tree.error();
  auto found = find_device(*tree, device);
  if (!found) return found.error();
  auto network = host::read_host_network();
  if (!network) return network.error();
  auto folder =
      host::open_runtime_directory(environment, host::read_host_identity().network_namespace);
  if (!folder) return folder.error();
  auto directory = datapath::Directory::join({.folder = folder->network_path, .device = device});
  if (!directory) return directory.error();

  EngineParts parts;
  auto blocks = std::make_unique<DirectoryBlocks>(std::move(*directory));
  datapath::Directory& own = blocks->directory();
  parts.directory = &own;
  parts.blocks = std::move(blocks);  // now, so that it goes after what uses it
  parts.counters = open_counters(folder->network_path, *found, own);
  if (config->local) {
    auto local = datapath::ShmDatapath::create(
        own, {.counters = of_link(parts.counters, transport::kLocalLink)});
    if (!local) return local.error();
    parts.links[transport::kLocalLink] = std::move(*local);
  }
  auto uplink =
      open_uplink(own, *config, *found, *network, of_link(parts.counters, transport::kUplink));
  if (!uplink) return uplink.error();
  parts.links[transport::kUplink] = std::move(uplink->datapath);
  auto capture = open_capture(*config, device);
  if (!capture) return capture.error();
  for (std::unique_ptr<Datapath>& link : parts.links) {
    if (link == nullptr) continue;
    auto with_taps = tapped(std::move(link), *config, device, *capture);
    if (!with_taps) return with_taps.error();
    link = std::move(*with_taps);
  }
  parts.port =
      std::make_unique<Port>(std::move(*tree), std::move(*found), *network, uplink->port_mtu_bytes);
  return parts;
}

}  // namespace uroce::engine
