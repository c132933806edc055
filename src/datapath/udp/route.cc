// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/route.h"

#include <net/if.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "datapath/udp/offload.h"

namespace uroce::datapath::udp {
namespace {

constexpr std::uint8_t kUsualHopLimit = 64;

// Of no use without one: link-local addresses, and groups, which no route leads to.
bool needs_interface(const Gid& gid) { return gid.is_link_local() || gid.is_multicast(); }

sockaddr_storage socket_address(const Gid& gid, std::uint16_t port, unsigned interface_index,
                                socklen_t& bytes) {
  sockaddr_storage address{};
  if (gid.is_ipv4()) {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(address);
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(port);
    std::memcpy(&ipv4.sin_addr, gid.bytes.data() + 12, sizeof ipv4.sin_addr);
    bytes = sizeof ipv4;
    return address;
  }
  auto& ipv6 = reinterpret_cast<sockaddr_in6&>(address);
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(port);
  std::memcpy(&ipv6.sin6_addr, gid.bytes.data(), sizeof ipv6.sin6_addr);
  if (needs_interface(gid)) ipv6.sin6_scope_id = interface_index;
  bytes = sizeof ipv6;
  return address;
}

// Ancillary data of a route, built once and copied with each message.
class ControlWriter {
 public:
  explicit ControlWriter(Route& route) : route_(route) {}

  template <typename Value>
  void add(int level, int type, const Value& value) {
    cmsghdr header{};
    header.cmsg_len = CMSG_LEN(sizeof value);
    header.cmsg_level = level;
    header.cmsg_type = type;
    std::byte* at = route_.control.data() + route_.control_bytes;
    std::memcpy(at, &header, sizeof header);
    std::memcpy(at + CMSG_LEN(0), &value, sizeof value);
    route_.control_bytes += CMSG_SPACE(sizeof value);
  }

 private:
  Route& route_;
};

void write_ipv4_control(Route& route, const Path& path, unsigned interface_index) {
  const bool is_multicast = path.destination.is_multicast();
  in_pktinfo source{};
  if (is_multicast) source.ipi_ifindex = static_cast<int>(interface_index);
  std::memcpy(&source.ipi_spec_dst, path.source.bytes.data() + 12, sizeof source.ipi_spec_dst);
  ControlWriter control(route);
  control.add(IPPROTO_IP, IP_PKTINFO, source);
  if (path.traffic_class != 0) control.add(IPPROTO_IP, IP_TOS, int{path.traffic_class});
  // Groups have another default.
  if (path.hop_limit != kUsualHopLimit || is_multicast) {
    control.add(IPPROTO_IP, IP_TTL, std::max(int{path.hop_limit}, 1));
  }
}

void write_ipv6_control(Route& route, const Path& path, unsigned interface_index) {
  in6_pktinfo source{};
  std::memcpy(&source.ipi6_addr, path.source.bytes.data(), sizeof source.ipi6_addr);
  const bool is_multicast = path.destination.is_multicast();
  if (needs_interface(path.source) || is_multicast) source.ipi6_ifindex = interface_index;
  ControlWriter control(route);
  control.add(IPPROTO_IPV6, IPV6_PKTINFO, source);
  if (path.traffic_class != 0) control.add(IPPROTO_IPV6, IPV6_TCLASS, int{path.traffic_class});
  if (path.hop_limit != kUsualHopLimit || is_multicast) {
    control.add(IPPROTO_IPV6, IPV6_HOPLIMIT, int{path.hop_limit});
  }
}

// Asks the kernel's routing table by connecting a socket that sends nothing.
int check_reachable(const Route& route) {
  const sa_family_t family = route.destination.ss_family;
  const posix::Descriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return errno;
  const auto* to = reinterpret_cast<const sockaddr*>(&route.destination);
  if (connect(socket.get(), to, route.destination_bytes) == 0) return 0;
  return errno == ENETUNREACH ? EHOSTUNREACH : errno;
}

}  // namespace

RouteTable::RouteTable(const UdpOptions& options)
    : options_(options), interface_index_(if_nametoindex(options.interface.c_str())) {
  const bool wanted = options.segmentation != Segmentation::kNever;
  const bool is_numbered =
      options.segmentation == Segmentation::kAlways || kernel_cuts_trains(options.interface);
  segments_max_ipv6_ = wanted ? probe_segments_max() : 1;
  segments_max_ipv4_ = is_numbered ? segments_max_ipv6_ : 1;
}

int RouteTable::open_pool(sa_family_t family) {
  Pool& pool = family == AF_INET ? ipv4_ : ipv6_;
  while (pool.size() < std::max<std::size_t>(options_.sending_sockets, 1)) {
    Result<SendingSocket> socket = open_sending_socket(family);
    if (!socket) return pool.empty() ? socket.error().code : 0;
    pool.push_back(std::move(*socket));
  }
  return 0;
}

std::uint32_t RouteTable::take_index() {
  const auto is_free = [](const Route& route) { return !route.in_use; };
  auto found = std::find_if(routes_.begin(), routes_.end(), is_free);
  if (found == routes_.end()) found = routes_.emplace(routes_.end());
  return static_cast<std::uint32_t>(found - routes_.begin());
}

int RouteTable::open(Path& path) {
  if (path.source.is_ipv4() != path.destination.is_ipv4()) return EHOSTUNREACH;
  Route route;
  route.destination =
      socket_address(path.destination, options_.port, interface_index_, route.destination_bytes);
  const bool is_multicast = path.destination.is_multicast();
  if (const int error = is_multicast ? 0 : check_reachable(route); error != 0) return error;
  const sa_family_t family = route.destination.ss_family;
  if (const int error = open_pool(family); error != 0) return error;
  const Pool& pool = family == AF_INET ? ipv4_ : ipv6_;
  const SendingSocket& socket = pool[path.udp_source_port % pool.size()];
  route.socket = socket.descriptor.get();
  route.segments_max = is_multicast ? 1 : segments_max(family);
  route.flow = wire::IcrcFlow(path.source, path.destination, socket.port);
  if (family == AF_INET) {
    write_ipv4_control(route, path, interface_index_);
  } else {
    write_ipv6_control(route, path, interface_index_);
  }
  route.in_use = true;
  path.route = take_index();
  routes_[path.route] = route;
  return 0;
}

void RouteTable::close(const Path& path) {
  if (is_open(path.route)) routes_[path.route].in_use = false;
}

void RouteTable::close_descriptors() {
  ipv4_.clear();
  ipv6_.clear();
}

}  // namespace uroce::datapath::udp
