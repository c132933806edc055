// SPDX-License-Identifier: BSD-2-Clause
// Socket addresses, as programs give them to librdmacm, and GIDs, as the wire has them.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "base/service_address.h"
#include "uroce/ids.h"

namespace uroce::cma {

// Each interface has its own network of these.
[[nodiscard]] constexpr bool is_link_local(const Gid& gid) {
  return gid.bytes[0] == 0xfe && (gid.bytes[1] & 0xc0) == 0x80;
}

// ::1
[[nodiscard]] constexpr Gid ipv6_loopback() {
  Gid gid;
  gid.bytes[15] = 1;
  return gid;
}

// An IP address, which may be of no host yet (any), and a port.
struct Address {
  Gid gid;  // zero: any
  bool is_ipv4 = true;
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // of a link-local IPv6 address: the interface

  [[nodiscard]] bool is_any() const { return gid.is_zero(); }
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_link_local() const { return cma::is_link_local(gid); }
};

// Of InfiniBand (infiniband.cc); of the service, the bits in the mask.
struct InfinibandAddress {
  Gid gid;
  std::uint16_t pkey = 0;
  std::uint64_t service_id = 0, service_mask = 0;

  [[nodiscard]] bool is_any_or_loopback() const;
};

// Nothing for what is neither IPv4 nor IPv6, or too short for it.
[[nodiscard]] std::optional<Address> to_address(const void* sockaddr, std::size_t bytes);
// Nothing for another family, or what is too short.
[[nodiscard]] std::optional<InfinibandAddress> to_infiniband_address(const void* sockaddr,
                                                                     std::size_t bytes);
// How many bytes it has.
std::uint32_t to_sockaddr(const Address& address, void* sockaddr);
// As a struct sockaddr_ib, which names a GID and a service.
std::uint32_t to_sockaddr_ib(const Gid& gid, std::uint16_t pkey, std::uint64_t service_id,
                             void* sockaddr);

}  // namespace uroce::cma
