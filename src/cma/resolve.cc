// SPDX-License-Identifier: BSD-2-Clause
// From addresses to a device and a path: bind, resolve address, resolve route. An address waits for
// its neighbour where the kernel has to ask first; a route is known at once.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "cma/agent.h"
#include "cma/route_lookup.h"
#include "engine/clock.h"

namespace uroce::cma {
namespace {

// As /proc/sys/net/ipv4/ip_local_port_range has it by default.
constexpr std::uint16_t kFirstEphemeral = 32'768;
constexpr std::uint16_t kLastEphemeral = 60'999;
constexpr int kEphemeralAttempts = 64;

Gid usual_loopback(bool is_ipv4) {
  Gid gid;
  if (is_ipv4) {
    gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  } else {
    gid.bytes[15] = 1;
  }
  return gid;
}

}  // namespace

ServiceAddress Agent::service_address(const Id& id) {
  if (!id.source.is_any()) return ServiceAddress::at(id.source.gid);
  if (id.source.is_ipv4) return {{}, Family::kIpv4};
  return {{}, id.only_own_family.value_or(false) ? Family::kIpv6 : Family::kBoth};
}

bool Agent::is_taken_here(const Id& id, bool to_listen) const {
  const ServiceAddress address = service_address(id);
  return std::ranges::any_of(ids_, [&](const auto& entry) {
    const Id& other = *entry.second;
    if (&other == &id || !other.claim || other.port_space != id.port_space ||
        other.source.port != id.source.port || !service_address(other).overlaps(address)) {
      return false;
    }
    return to_listen ||
           !(id.reuses_address && other.reuses_address && other.state != IdState::kListening);
  });
}

// A file that the program has just closed may hold the port still.
int Agent::claim_port(Id& id) {
  const int error = try_to_claim_port(id);
  if (error != EADDRINUSE) return error;
  close_abandoned_files();
  return try_to_claim_port(id);
}

// Port 0 is any that nobody has.
int Agent::try_to_claim_port(Id& id) {
  const bool is_any = id.source.port == 0;
  int error = EADDRINUSE;
  for (int attempt = 0; attempt < (is_any ? kEphemeralAttempts : 1); ++attempt) {
    if (is_any) {
      id.source.port = static_cast<std::uint16_t>(random_.between(kFirstEphemeral, kLastEphemeral));
    }
    const ServiceAddress address = service_address(id);
    if (is_taken_here(id, false)) continue;
    std::uint32_t claim = 0;
    error = directory().claim_service({.id = id.service_id(id.source.port),
                                       .address = address,
                                       .shares = id.reuses_address,
                                       .block = qpn_block(*block_holder_)},
                                      claim);
    if (error == 0) {
      id.claim = claim;
      return 0;
    }
    if (error != EADDRINUSE) break;
  }
  if (is_any) id.source.port = 0;
  return error == ENOSPC ? EADDRNOTAVAIL : error;
}

void Agent::release_port(Id& id) {
  if (id.claim) directory().release_service(*id.claim);
  id.claim.reset();
}

// Which device has the source address, and as which GID it goes out.
int Agent::bind_to_device(Id& id) {
  id.device = device_of(id.source.gid);
  id.route.source = id.source.gid;
  if (id.device == nullptr && id.source.is_loopback()) {
    id.device = loopback_device(id.source.is_ipv4);
    if (id.device != nullptr) id.route.source = *id.device->any_gid(id.source.is_ipv4);
  }
  if (id.device == nullptr) return ENODEV;
  id.route.device = id.device;
  return 0;
}

int Agent::bind(Id& id, const Address& address) {
  if (id.state != IdState::kIdle) return EINVAL;
  id.source = address;
  if (!address.is_any()) {
    if (const int error = bind_to_device(id); error != 0) {
      id.source = {};
      // As from the kernel: an address of the host, but of no device, is no such device.
      const bool is_own = first_engine().port().is_own_address(address.gid);
      return is_own ? error : EADDRNOTAVAIL;
    }
  }
  if (const int error = claim_port(id); error != 0) {
    id.source = {};
    id.device = nullptr;
    return error;
  }
  id.state = IdState::kBound;
  return 0;
}

// Where to send from: what the program says, or else what the kernel would. 0 or an errno.
int Agent::choose_source(const Address& destination, bool is_loopback, Address& from) const {
  if (!from.is_any()) return 0;
  if (is_loopback) {
    from.gid = destination.gid;
    return 0;
  }
  const int error = find_source(destination, from);
  if (error == 0 && device_of(from.gid) != nullptr) return 0;
  // An address that no table of the kernel's has may be behind a port that is not the kernel's.
  const auto own =
      std::ranges::find_if(devices_, [](const auto& device) { return device->is_on_its_own(); });
  if (own == devices_.end()) return error;
  const auto gid = (*own)->any_gid(destination.is_ipv4);
  if (!gid) return ENETUNREACH;
  from.gid = *gid;
  return 0;
}

int Agent::resolve_address(Id& id, const Address* source, const Address& destination,
                           Duration patience) {
  if (id.state == IdState::kIdle && source != nullptr && !source->is_any()) {
    if (const int error = bind(id, *source); error != 0) return error;
  }
  if (id.state != IdState::kIdle && id.state != IdState::kBound) return EINVAL;
  if (id.is_infiniband) return EINVAL;
  Address from = id.source;
  if (!from.is_any() && from.is_ipv4 != destination.is_ipv4) return EINVAL;
  from.is_ipv4 = destination.is_ipv4;
  Address to = destination;
  if (to.is_any()) to.gid = usual_loopback(to.is_ipv4);
  const bool is_loopback = to.is_loopback() && device_of(to.gid) == nullptr;
  if (const int error = choose_source(to, is_loopback, from); error != 0) return error;
  if (id.source.port == 0) {
    from.port = static_cast<std::uint16_t>(random_.between(kFirstEphemeral, kLastEphemeral));
  }
  const Address former = std::exchange(id.source, from);
  if (const int error = bind_to_device(id); error != 0) {
    id.source = former;
    post(id, EventType::kAddressError, static_cast<std::uint32_t>(-error));
    return 0;
  }
  id.destination = to;
  id.route.destination = is_loopback ? id.route.source : to.gid;
  id.route.traffic_class = id.type_of_service;
  const auto next_hop = is_loopback ? std::nullopt : ask_neighbour(*id.device, to.gid);
  if (next_hop) {
    wait_for_neighbour(id, *next_hop, patience, former);
  } else {
    finish_address(id);
  }
  return 0;
}

void Agent::finish_address(Id& id) {
  id.state = IdState::kAddressResolved;
  post(id, EventType::kAddressResolved, 0);
}

void Agent::wait_for_neighbour(Id& id, const Gid& next_hop, Duration patience,
                               const Address& former) {
  const Instant now = engine::monotonic_now();
  neighbours_.wait({&id, next_hop, now + patience, former, id.state});
  id.state = IdState::kResolvingAddress;
  if (neighbours_.next_look(now) < sleeps_until_) wake();
}

void Agent::look_after_neighbours(Instant now) {
  neighbours_.look(now, [this](const Neighbours::Wait& wait, Neighbours::Outcome outcome) {
    Id& id = *wait.id;
    if (outcome == Neighbours::Outcome::kAnswered) return finish_address(id);
    id.source = wait.source_before;
    id.state = wait.state_before;
    post(id, EventType::kAddressError, static_cast<std::uint32_t>(-ETIMEDOUT));
  });
}

int Agent::resolve_route(Id& id) {
  if (id.state != IdState::kAddressResolved) return EINVAL;
  if (id.is_infiniband) return ENODEV;
  id.state = IdState::kRouteResolved;
  post(id, EventType::kRouteResolved, 0);
  return 0;
}

}  // namespace uroce::cma
