// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/kernel_interface.h"

#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/byte_order.h"
#include "posix/descriptor.h"
#include "posix/interface.h"
#include "wire/icrc.h"

namespace uroce::datapath {
namespace {

constexpr int kMtuMax = 65'535;

// A socket that takes nothing in: bound to the interface, so that programs on other interfaces keep
// theirs, and with a filter that drops each packet before it is queued. -1 where it cannot be had.
int hold(int family, const std::string& interface_name) {
  const int held = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (held < 0) return -1;
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop_all};
  const int on = 1;
  sockaddr_in6 address{};  // the IPv4 form has the port in the same place, and zeros behind it
  address.sin6_family = static_cast<sa_family_t>(family);
  address.sin6_port = to_big(wire::kRoceUdpPort);
  const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if ((family == AF_INET6 && setsockopt(held, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) ||
      setsockopt(held, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 ||
      setsockopt(held, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0 ||
      setsockopt(held, SOL_SOCKET, SO_BINDTODEVICE, interface_name.c_str(),
                 static_cast<socklen_t>(interface_name.size())) != 0 ||
      bind(held, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    close(held);
    return -1;
  }
  return held;
}

Gid gid_of(const sockaddr& address, bool ipv4) {
  Gid gid;
  if (ipv4) {
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
    return ipv4_mapped(bytes);
  }
  std::memcpy(gid.bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, 16);
  return gid;
}

}  // namespace

Result<KernelInterface> find_kernel_interface(std::string_view name) {
  KernelInterface found{.name = std::string(name)};
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  const posix::Descriptor asking(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!asking.is_open()) return Error{errno, std::string("dpdk: socket: ") + strerror(errno)};
  found.index = if_nametoindex(found.name.c_str());
  if (found.index == 0 || ioctl(asking.get(), SIOCGIFMTU, &request) != 0) {
    return Error{errno, "dpdk: interface " + found.name + ": " + strerror(errno)};
  }
  found.mtu_bytes = static_cast<std::uint16_t>(std::min(request.ifr_mtu, kMtuMax));
  const unsigned flags = posix::interface_flags(found.name);
  if ((flags & IFF_UP) == 0) {
    return Error{ENETDOWN,
                 "dpdk: interface " + found.name + " is down: ip link set " + found.name + " up"};
  }
  found.is_loopback = (flags & IFF_LOOPBACK) != 0;
  return found;
}

std::vector<InterfaceAddress> addresses_of(const KernelInterface& interface) {
  std::vector<InterfaceAddress> found;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return found;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_netmask == nullptr || interface.name != at->ifa_name) {
      continue;
    }
    const bool ipv4 = at->ifa_addr->sa_family == AF_INET;
    if (!ipv4 && at->ifa_addr->sa_family != AF_INET6) continue;
    const Gid mask = gid_of(*at->ifa_netmask, ipv4);
    unsigned bits = 0;
    for (std::size_t i = ipv4 ? 12 : 0; i < mask.bytes.size(); ++i) {
      bits += static_cast<unsigned>(std::popcount(mask.bytes[i]));
    }
    found.push_back({gid_of(*at->ifa_addr, ipv4), static_cast<std::uint8_t>(bits)});
  }
  freeifaddrs(first);
  return found;
}

HeldPort::HeldPort(const std::string& interface_name) {
  for (const int family : {AF_INET, AF_INET6}) {
    if (const int held = hold(family, interface_name); held >= 0) descriptors_.push_back(held);
  }
}

void HeldPort::release() {
  for (const int descriptor : descriptors_) close(descriptor);
  descriptors_.clear();
}

void PromiscuousInterface::hold(unsigned interface_index) {
  if (descriptor_ >= 0) return;
  // Of no protocol: nothing is ever queued.
  descriptor_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  const packet_mreq request{.mr_ifindex = static_cast<int>(interface_index),
                            .mr_type = PACKET_MR_PROMISC,
                            .mr_alen = 0,
                            .mr_address = {}};
  if (descriptor_ < 0 ||
      setsockopt(descriptor_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request) != 0) {
    release();
  }
}

void PromiscuousInterface::release() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace uroce::datapath
