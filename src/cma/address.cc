// SPDX-License-Identifier: BSD-2-Clause
#include "cma/address.h"

#include <infiniband/ib.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "base/byte_order.h"

namespace uroce::cma {
namespace {

Gid gid_of(const in_addr& address) {
  Gid gid;
  if (address.s_addr == INADDR_ANY) return gid;
  gid.bytes[10] = gid.bytes[11] = 0xff;
  std::memcpy(gid.bytes.data() + 12, &address, sizeof address);
  return gid;
}

template <typename Sockaddr>
Sockaddr read(const void* from) {
  Sockaddr address;
  std::memcpy(&address, from, sizeof address);
  return address;
}

}  // namespace

bool Address::is_loopback() const {
  if (is_ipv4) return gid.is_ipv4() && gid.bytes[12] == 127;
  return gid == ipv6_loopback();
}

std::optional<Address> to_address(const void* sockaddr, std::size_t bytes) {
  sa_family_t family = AF_UNSPEC;
  if (bytes >= sizeof family) family = read<sa_family_t>(sockaddr);
  if (family == AF_INET && bytes >= sizeof(sockaddr_in)) {
    const auto in = read<sockaddr_in>(sockaddr);
    return Address{.gid = gid_of(in.sin_addr), .is_ipv4 = true, .port = to_big(in.sin_port)};
  }
  if (family == AF_INET6 && bytes >= sizeof(sockaddr_in6)) {
    const auto in6 = read<sockaddr_in6>(sockaddr);
    Address address{
        .gid = {}, .is_ipv4 = false, .port = to_big(in6.sin6_port), .scope = in6.sin6_scope_id};
    std::memcpy(address.gid.bytes.data(), &in6.sin6_addr, sizeof in6.sin6_addr);
    return address;
  }
  return std::nullopt;
}

bool InfinibandAddress::is_any_or_loopback() const {
  return gid.is_zero() || gid == ipv6_loopback();
}

std::optional<InfinibandAddress> to_infiniband_address(const void* sockaddr, std::size_t bytes) {
  if (bytes < sizeof(sockaddr_ib) || read<sa_family_t>(sockaddr) != AF_IB) return std::nullopt;
  const auto ib = read<sockaddr_ib>(sockaddr);
  InfinibandAddress address{.gid = {},
                            .pkey = to_big(ib.sib_pkey),
                            .service_id = to_big(ib.sib_sid),
                            .service_mask = to_big(ib.sib_sid_mask)};
  std::memcpy(address.gid.bytes.data(), &ib.sib_addr, sizeof ib.sib_addr);
  return address;
}

std::uint32_t to_sockaddr(const Address& address, void* sockaddr) {
  if (address.is_ipv4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = to_big(address.port);
    std::memcpy(&in.sin_addr, address.gid.bytes.data() + 12, sizeof in.sin_addr);
    std::memcpy(sockaddr, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = to_big(address.port);
  in6.sin6_scope_id = address.scope;
  std::memcpy(&in6.sin6_addr, address.gid.bytes.data(), sizeof in6.sin6_addr);
  std::memcpy(sockaddr, &in6, sizeof in6);
  return sizeof in6;
}

std::uint32_t to_sockaddr_ib(const Gid& gid, std::uint16_t pkey, std::uint64_t service_id,
                             void* sockaddr) {
  sockaddr_ib ib{};
  ib.sib_family = AF_IB;
  ib.sib_pkey = to_big(pkey);
  std::memcpy(&ib.sib_addr, gid.bytes.data(), sizeof ib.sib_addr);
  ib.sib_sid = to_big(service_id);
  ib.sib_sid_mask = ~std::uint64_t{0};
  std::memcpy(sockaddr, &ib, sizeof ib);
  return sizeof ib;
}

}  // namespace uroce::cma
