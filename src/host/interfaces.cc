// SPDX-License-Identifier: BSD-2-Clause
#include "host/interfaces.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/route.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>

#include "host/address_monitor.h"
#include "posix/interface.h"

namespace uroce::host {
namespace {

struct FreeSocket {
  void operator()(nl_sock* socket) const { nl_socket_free(socket); }
};
struct FreeCache {
  void operator()(nl_cache* cache) const { nl_cache_free(cache); }
};
using Socket = std::unique_ptr<nl_sock, FreeSocket>;
using Cache = std::unique_ptr<nl_cache, FreeCache>;

Error netlink_error(std::string_view what, int code) {
  std::string message = "the kernel's network interfaces cannot be read (";
  message.append(what).append("): ").append(nl_geterror(code));
  return {EIO, std::move(message)};
}

Interface interface_from(rtnl_link* link) {
  Interface result;
  result.name = rtnl_link_get_name(link);
  result.index = rtnl_link_get_ifindex(link);
  result.mtu_bytes = rtnl_link_get_mtu(link);
  const unsigned flags = rtnl_link_get_flags(link);
  result.up = (flags & IFF_UP) != 0;
  result.running = result.up && (flags & IFF_LOWER_UP) != 0;
  result.loopback = (flags & IFF_LOOPBACK) != 0;
  if (const char* kind = rtnl_link_get_type(link); kind != nullptr) result.kind = kind;
  const nl_addr* mac = rtnl_link_get_addr(link);
  if (mac != nullptr && nl_addr_get_len(mac) == result.mac.size()) {
    std::memcpy(result.mac.data(), nl_addr_get_binary_addr(mac), result.mac.size());
  }
  result.megabits_per_second = posix::link_speed(result.name);
  return result;
}

Gid gid_from(const nl_addr* address) {
  Gid gid;
  const void* bytes = nl_addr_get_binary_addr(address);
  if (nl_addr_get_family(address) == AF_INET) {
    gid.bytes[10] = gid.bytes[11] = 0xff;
    std::memcpy(gid.bytes.data() + 12, bytes, 4);
  } else {
    std::memcpy(gid.bytes.data(), bytes, 16);
  }
  return gid;
}

InterfaceAddress address_from(rtnl_addr* entry, const nl_addr* local) {
  InterfaceAddress result;
  result.address = {gid_from(local), static_cast<std::uint8_t>(rtnl_addr_get_prefixlen(entry))};
  const unsigned flags = rtnl_addr_get_flags(entry);
  const bool failed = (flags & IFA_F_DADFAILED) != 0;
  const bool tentative = (flags & IFA_F_TENTATIVE) != 0 && (flags & IFA_F_OPTIMISTIC) == 0;
  result.usable = !failed && !tentative;
  result.pending = !failed && tentative;
  return result;
}

void add_address(rtnl_addr* entry, std::vector<Interface>& interfaces) {
  const nl_addr* local = rtnl_addr_get_local(entry);
  if (local == nullptr) return;
  const int family = nl_addr_get_family(local);
  if (family != AF_INET && family != AF_INET6) return;
  const auto owner = std::ranges::find(interfaces, rtnl_addr_get_ifindex(entry), &Interface::index);
  if (owner != interfaces.end()) owner->addresses.push_back(address_from(entry, local));
}

// The interface of the default route with the lowest metric, 0 when this family has none.
int default_route_index(nl_sock* socket, int family) {
  nl_cache* raw = nullptr;
  if (rtnl_route_alloc_cache(socket, family, 0, &raw) < 0) return 0;
  const Cache routes(raw);
  int index = 0;
  auto best = std::numeric_limits<std::uint64_t>::max();
  for (nl_object* o = nl_cache_get_first(raw); o != nullptr; o = nl_cache_get_next(o)) {
    auto* route = reinterpret_cast<rtnl_route*>(o);
    const nl_addr* destination = rtnl_route_get_dst(route);
    const bool is_default = destination == nullptr || nl_addr_get_prefixlen(destination) == 0;
    if (!is_default || rtnl_route_get_table(route) != RT_TABLE_MAIN ||
        rtnl_route_get_type(route) != RTN_UNICAST || rtnl_route_get_nnexthops(route) == 0 ||
        rtnl_route_get_priority(route) >= best) {
      continue;
    }
    best = rtnl_route_get_priority(route);
    index = rtnl_route_nh_get_ifindex(rtnl_route_nexthop_n(route, 0));
  }
  return index;
}

std::string default_route_name(nl_sock* socket, const std::vector<Interface>& interfaces) {
  for (const int family : {AF_INET, AF_INET6}) {
    const int index = default_route_index(socket, family);
    const auto found = std::ranges::find(interfaces, index, &Interface::index);
    if (index != 0 && found != interfaces.end()) return found->name;
  }
  return {};
}

bool has_pending(const HostNetwork& network, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const Interface* interface = network.find(name);
    return interface != nullptr && interface->running &&
           std::ranges::any_of(interface->addresses, &InterfaceAddress::pending);
  });
}

}  // namespace

const Interface* HostNetwork::find(std::string_view name) const {
  const auto found = std::ranges::find(interfaces, name, &Interface::name);
  return found == interfaces.end() ? nullptr : &*found;
}

const Interface* HostNetwork::find(int index, std::string_view name) const {
  const auto found = std::ranges::find(interfaces, index, &Interface::index);
  return index == 0 || found == interfaces.end() ? find(name) : &*found;
}

Result<HostNetwork> read_host_network() {
  const Socket socket(nl_socket_alloc());
  if (!socket) return Error{ENOMEM, "no memory for a netlink socket"};
  if (const int code = nl_connect(socket.get(), NETLINK_ROUTE); code < 0) {
    return netlink_error("socket", code);
  }
  nl_cache* raw = nullptr;
  if (const int code = rtnl_link_alloc_cache(socket.get(), AF_UNSPEC, &raw); code < 0) {
    return netlink_error("links", code);
  }
  const Cache links(raw);
  HostNetwork network;
  for (nl_object* o = nl_cache_get_first(raw); o != nullptr; o = nl_cache_get_next(o)) {
    network.interfaces.push_back(interface_from(reinterpret_cast<rtnl_link*>(o)));
  }
  std::ranges::sort(network.interfaces, {}, &Interface::index);
  if (const int code = rtnl_addr_alloc_cache(socket.get(), &raw); code < 0) {
    return netlink_error("addresses", code);
  }
  const Cache addresses(raw);
  for (nl_object* o = nl_cache_get_first(raw); o != nullptr; o = nl_cache_get_next(o)) {
    add_address(reinterpret_cast<rtnl_addr*>(o), network.interfaces);
  }
  network.default_route = default_route_name(socket.get(), network.interfaces);
  return network;
}

void wait_for_pending_addresses(HostNetwork& network, const std::vector<std::string>& names) {
  using std::chrono::steady_clock;
  // RFC 4862: a random delay of up to a second, then one probe answered within another.
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(2500);
  Result<AddressMonitor> monitor = AddressMonitor::open();
  while (monitor && has_pending(network, names)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd waiting{monitor->descriptor(), POLLIN, 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return;
    monitor->drain();
    Result<HostNetwork> again = read_host_network();
    if (!again) return;
    network = std::move(*again);
  }
}

}  // namespace uroce::host
