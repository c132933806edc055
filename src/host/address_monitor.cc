// SPDX-License-Identifier: BSD-2-Clause
#include "host/address_monitor.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace uroce::host {
namespace {

void note(const nlmsghdr& header, NetworkChange& change) {
  switch (header.nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      change.links = true;
      break;
    case RTM_NEWADDR:
    case RTM_DELADDR:
      change.addresses = true;
      break;
    default:
      break;
  }
}

}  // namespace

Result<AddressMonitor> AddressMonitor::open() {
  posix::Descriptor descriptor(
      socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (!descriptor.is_open() ||
      bind(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_error("netlink", "changes of addresses cannot be followed");
  }
  return AddressMonitor(std::move(descriptor));
}

NetworkChange AddressMonitor::drain() {
  NetworkChange change;
  alignas(nlmsghdr) std::array<std::byte, 16384> buffer;
  for (;;) {
    const ssize_t received = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && errno == ENOBUFS) {
      change = {true, true};
      continue;
    }
    if (received <= 0) return change;
    auto left = static_cast<unsigned>(received);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      note(*header, change);
    }
  }
}

}  // namespace uroce::host
