// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/port_spec.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "datapath/dpdk_drivers.h"

namespace uroce::datapath {
namespace {

// Packet buffers where the driver copies: a burst lent, one built, one in the driver's hands.
constexpr unsigned kFew = 319;

// af_packet: framesz holds a packet of path MTU 4096 (4,194 bytes) behind the kernel's 66; 56 such
// frames are 63 pages, so that a block of 64 wastes next to nothing. Without qdisc_bypass every
// frame sent on lo comes back twice.
// af_xdp: the kernel wants a packet buffer with all that DPDK puts round it to fit a page.
// memif: a buffer a packet; the ring is short because its buffers are used in turn, and 128 of them
// stay in the cache where 1,024 do not.
constexpr std::array kDrivers{
    DriverFacts{.driver = "net_af_packet",
                .owner = PortOwner::kKernel,
                .defaults = "qdisc_bypass=1,framesz=4608,blocksz=258048,framecnt=2016",
                .mbufs = kFew,
                .port_mtu_bytes = 9000,
                .window_bytes = 1024 * 1024},
    DriverFacts{.driver = "net_af_xdp",
                .owner = PortOwner::kKernel,
                .identity = "iface",
                .takes_everything = true,
                .mbuf_bytes = 3584},
    DriverFacts{.driver = "net_memif",
                .defaults = "bsize=4608,rsize=7",
                .identity = "socket,id,role",
                .is_kept = true,
                .mbufs = kFew,
                .port_mtu_bytes = 9000},
    DriverFacts{.driver = "net_tap",
                .identity = "iface",
                .has_interrupt = true,
                .descriptors = 64,
                .mbufs = 511},
    DriverFacts{.driver = "net_ring", .mbufs = 2'047, .port_mtu_bytes = 9000},
    DriverFacts{.driver = "net_pcap", .mbufs = kFew, .port_mtu_bytes = 9000},
    DriverFacts{.driver = "net_null", .mbufs = kFew, .port_mtu_bytes = 9000},
};
constexpr DriverFacts kUnknownDriver{.driver = ""};

// The rest of `list` behind its first element, which is taken off.
std::string_view take(std::string_view& list, char separator = ',') {
  const auto end = std::min(list.find(separator), list.size());
  const std::string_view first = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return first;
}

std::string_view find_argument(std::string_view arguments, std::string_view key) {
  while (!arguments.empty()) {
    std::string_view value = take(arguments);
    if (take(value, '=') == key) return value;
  }
  return {};
}

std::string add_defaults(std::string arguments, std::string_view defaults) {
  while (!defaults.empty()) {
    const std::string_view argument = take(defaults);
    std::string_view rest = argument;
    if (!find_argument(arguments, take(rest, '=')).empty()) continue;
    if (!arguments.empty()) arguments += ',';
    arguments += argument;
  }
  return arguments;
}

// 0 where there is none, or none that fits.
std::uint16_t number(std::string_view text) {
  std::uint16_t value = 0;
  const auto end = text.data() + text.size();
  return std::from_chars(text.data(), end, value).ec == std::errc() ? value : std::uint16_t{0};
}

const DriverFacts* find_driver(std::string_view device) {
  const auto found = std::ranges::find_if(
      kDrivers, [&](const DriverFacts& facts) { return device.starts_with(facts.driver); });
  return found == kDrivers.end() ? nullptr : &*found;
}

static_assert(std::ranges::equal(kDrivers, kDpdkDrivers, {}, &DriverFacts::driver,
                                 &DpdkDriver::name));

}  // namespace

std::string_view PortSpec::argument(std::string_view key) const {
  return find_argument(arguments, key);
}

std::string PortSpec::identity() const {
  if (is_pci) return device;
  if (facts->identity.empty()) return {};
  std::string name(facts->driver);
  for (std::string_view keys = facts->identity; !keys.empty();) {
    const std::string_view key = take(keys);
    name.append(",").append(key).append("=").append(argument(key));
  }
  return name;
}

// Of af_packet's frames the kernel takes 66 bytes, Ethernet 14.
std::uint16_t PortSpec::mtu_bytes(std::uint16_t claimed) const {
  constexpr std::uint16_t kAroundIpBytes = 80;
  const std::uint16_t mtu = std::max(claimed, facts->port_mtu_bytes);
  const std::uint16_t frame = number(argument("framesz"));
  return frame == 0 ? mtu : std::min<std::uint16_t>(mtu, frame - std::min(frame, kAroundIpBytes));
}

// af_packet insists that a buffer holds a whole frame of its ring.
std::uint16_t PortSpec::mbuf_bytes() const {
  return std::max(number(argument("framesz")), facts->mbuf_bytes);
}

bool PortSpec::connects_at_start() const {
  const std::string_view role = argument("role");
  return facts->driver == "net_memif" && role != "server" && role != "master";
}

std::string PortSpec::driver_library() const {
  return is_pci ? std::string() : "librte_" + std::string(facts->driver) + ".so";
}

Result<PortSpec> parse_port_spec(std::string_view spec, std::string_view interface) {
  const std::string whole(spec);
  std::string_view rest = spec;
  PortSpec port;
  port.device = take(rest);
  if (is_pci_address(port.device)) {
    port.is_pci = true;
    port.facts = &kUnknownDriver;
    port.arguments = rest;
    return port;
  }
  if (std::string trouble = why_no_dpdk_device(spec); !trouble.empty()) {
    return Error{EINVAL, std::move(trouble)};
  }
  port.facts = find_driver(port.device);
  port.arguments = add_defaults(std::string(rest), port.facts->defaults);
  if (port.facts->owner == PortOwner::kKernel && !interface.empty()) {
    port.arguments = add_defaults(port.arguments, "iface=" + std::string(interface));
  }
  if (port.facts->owner == PortOwner::kKernel && port.argument("iface").empty()) {
    return Error{EINVAL,
                 "dpdk:" + whole + ": say which interface, as in " + port.device + ",iface=eth0"};
  }
  return port;
}

}  // namespace uroce::datapath
