// SPDX-License-Identifier: BSD-2-Clause
// Addresses of InfiniBand (AF_IB: a GID, a P_Key and a service), as far as Linux goes with them
// where all ports are RoCE. There is no interface behind such an address, so none can be bound to
// but the empty one; a GID of a port, or one with the prefix of a port's, is found; and the route
// to it is the end, whatever it is. So nobody ever connects by them.
#include <algorithm>
#include <cerrno>

#include "cma/agent.h"

namespace uroce::cma {
namespace {

constexpr std::uint64_t kPortSpaceMask = 0xffff'ffff'ffff'0000;

std::uint64_t services_of(rdma_ucm_port_space port_space) {
  return std::uint64_t{port_space} << 16;
}

// The service, as far as its mask names it, is one of the identifier's port space. RDMA_PS_IB has
// those of IP, too.
bool fits(const InfinibandAddress& address, rdma_ucm_port_space port_space) {
  const std::uint64_t mask = address.service_mask & kPortSpaceMask;
  const auto is_of = [&](rdma_ucm_port_space other) {
    return (port_space == RDMA_PS_IB || port_space == other) &&
           (address.service_id & mask) == (services_of(other) & mask);
  };
  return is_of(RDMA_PS_IB) || is_of(RDMA_PS_TCP) || is_of(RDMA_PS_UDP);
}

// Ours is the default one, and members of both kinds are of it.
bool is_known_pkey(std::uint16_t pkey) {
  constexpr std::uint16_t kMembership = 0x8000;
  return (pkey | kMembership) == cm::kDefaultPkey;
}

bool have_same_prefix(const Gid& a, const Gid& b) {
  return std::equal(a.bytes.begin(), a.bytes.begin() + 8, b.bytes.begin());
}

// The GID by which the device reaches that one.
std::optional<Gid> source_towards(const Device& device, const Gid& destination) {
  if (device.gid_index(destination)) return destination;
  if (!device.is_active()) return std::nullopt;
  for (std::size_t i = 0; i < host::GidTable::kLength; ++i) {
    const auto gid = device.engine().port().gid(i);
    if (gid && have_same_prefix(*gid, destination)) return gid;
  }
  return std::nullopt;
}

}  // namespace

int Agent::bind_infiniband(Id& id, const InfinibandAddress& address) {
  if (id.state != IdState::kIdle) return EINVAL;
  if (!address.is_any_or_loopback()) return ENODEV;
  if (!fits(address, id.port_space)) return EPROTONOSUPPORT;
  id.is_infiniband = true;
  id.state = IdState::kBound;
  return 0;
}

int Agent::resolve_infiniband(Id& id, const InfinibandAddress& source,
                              const InfinibandAddress& destination) {
  if (id.state == IdState::kIdle) {
    if (const int error = bind_infiniband(id, source); error != 0) return error;
  }
  if (id.state != IdState::kBound || !id.is_infiniband) return EINVAL;
  const bool is_loopback = destination.is_any_or_loopback();
  if (!is_loopback && !is_known_pkey(destination.pkey)) return ENODEV;
  for (const auto& device : devices_) {
    const auto from =
        is_loopback ? device->engine().port().gid(0) : source_towards(*device, destination.gid);
    if (!from) continue;
    id.bind_to(device.get());
    id.route.source = *from;
    id.route.destination = is_loopback ? *from : destination.gid;
    finish_address(id);
    return 0;
  }
  return ENODEV;
}

}  // namespace uroce::cma
