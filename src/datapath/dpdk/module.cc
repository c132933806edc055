// SPDX-License-Identifier: BSD-2-Clause
// The module's one symbol: makes a datapath out of a specification. The steps in their order: read
// the specification, look at the kernel's interface, claim the port, start DPDK, open the port,
// choose who resolves addresses.
#include <algorithm>
#include <cerrno>
#include <exception>

#include "datapath/dpdk/dpdk_datapath.h"
#include "datapath/dpdk/eal.h"
#include "datapath/dpdk/parked_ports.h"
#include "datapath/dpdk/port_spec.h"
#include "datapath/dpdk/stale_socket.h"
#include "datapath/dpdk_loader.h"
#include "datapath/neighbour/own_resolver.h"
#include "wire/path_mtu.h"

namespace uroce::datapath {
namespace {

struct Opened {
  DpdkDatapath::Parts parts;
  KernelInterface interface;  // without a name where nobody owns the port
};

std::vector<Gid> own_addresses(const DpdkOptions& options, const Opened& opened) {
  std::vector<Gid> own;
  for (const InterfaceAddress& address : options.addresses) own.push_back(address.gid);
  if (opened.interface.name.empty()) own.push_back(link_local_of(opened.parts.port->mac()));
  return own;
}

Result<OwnedPort> open_or_take_port(const PortSpec& spec, const std::string& parking_name) {
  OwnedPort parked = take_parked_port(parking_name);
  if (parked.port != nullptr) return parked;
  auto claim = PortClaim::take(spec.identity());
  if (!claim) return claim.error();
  if (auto error = start_eal(spec)) return std::move(*error);
  remove_stale_socket(spec);
  auto port = Port::open(spec);
  if (!port) return port.error();
  return OwnedPort{std::move(*claim), std::move(*port)};
}

// The kernel asks for its own interfaces, where packets reach it at all; else we do, with the
// addresses that we were given or that the interface has.
void choose_resolver(const PortSpec& spec, const DpdkOptions& options, Opened& opened) {
  DpdkDatapath::Parts& parts = opened.parts;
  const KernelInterface& interface = opened.interface;
  if (interface.name.empty() || spec.facts->takes_everything) {
    const bool given = interface.name.empty() || !options.addresses.empty();
    parts.resolver = std::make_unique<OwnResolver>(
        parts.port->mac(), given ? options.addresses : addresses_of(interface));
    return;
  }
  auto resolver = std::make_unique<KernelResolver>(interface.index, interface.is_loopback);
  parts.kernel_resolver = resolver.get();
  parts.resolver = std::move(resolver);
  parts.held_port = std::make_unique<HeldPort>(interface.name);
}

// Without a VLAN tag, which must find room too.
std::uint16_t max_frame_bytes(const Port& port, std::uint16_t mtu_bytes) {
  const std::size_t room = port.buffer_bytes() - wire::kVlanTagBytes;
  return static_cast<std::uint16_t>(
      std::min<std::size_t>(room, mtu_bytes + wire::kEthernetHeaderBytes));
}

Result<Opened> open_parts(const PortSpec& spec, const DpdkOptions& options) {
  Opened opened;
  const bool kernel_owned = spec.facts->owner == PortOwner::kKernel;
  if (kernel_owned) {
    auto interface = find_kernel_interface(spec.argument("iface"));
    if (!interface) return interface.error();
    opened.interface = std::move(*interface);
    opened.parts.interface_index = opened.interface.index;
  }
  if (spec.facts->is_kept) opened.parts.parking_name = spec.device + ',' + spec.arguments;
  auto owned = open_or_take_port(spec, opened.parts.parking_name);
  if (!owned) return owned.error();
  opened.parts.claim = std::move(owned->claim);
  opened.parts.port = std::move(owned->port);
  choose_resolver(spec, options, opened);
  return opened;
}

Result<DpdkPort> open_port(const DpdkOptions& options) {
  const auto spec = parse_port_spec(options.spec, options.interface);
  if (!spec) return spec.error();
  auto opened = open_parts(*spec, options);
  if (!opened) return opened.error();
  const bool kernel_owned = !opened->interface.name.empty();
  const std::uint16_t port_mtu_bytes = opened->parts.port->mtu_bytes();
  DpdkPort port{.datapath = nullptr,
                .mac = opened->parts.port->mac(),
                .mtu_bytes = kernel_owned ? opened->interface.mtu_bytes : port_mtu_bytes,
                .kernel_owned = kernel_owned,
                .interface_name = opened->interface.name};
  const std::uint16_t passed_bytes = std::min(port.mtu_bytes, port_mtu_bytes);
  const DpdkDatapath::Limits limits{
      .path_mtu = wire::path_mtu_of(passed_bytes),
      .max_frame_bytes = max_frame_bytes(*opened->parts.port, passed_bytes),
      .window_bytes = spec->facts->window_bytes};
  ReceiveOptions receive{.addresses = own_addresses(options, *opened),
                         .verify_icrc = options.verify_icrc};
  port.datapath = std::make_unique<DpdkDatapath>(std::move(opened->parts), limits,
                                                 std::move(receive), options.counters);
  return port;
}

}  // namespace
}  // namespace uroce::datapath

extern "C" [[gnu::visibility("default")]] bool uroce_dpdk_open(
    uroce::datapath::DpdkOpenRequest* request) {
  using namespace uroce::datapath;
  if (request->interface_version != DpdkOpenRequest::kInterfaceVersion) {
    request->error = uroce::Error{ENOEXEC, "dpdk: the module is of another version of uroce"};
    return false;
  }
  try {
    auto port = open_port(*request->options);
    if (port) {
      request->port = std::move(*port);
      return true;
    }
    request->error = port.error();
  } catch (const std::exception& failure) {  // no memory; it must not cross the module's border
    request->error = uroce::Error{ENOMEM, std::string("dpdk: ") + failure.what()};
  }
  return false;
}
