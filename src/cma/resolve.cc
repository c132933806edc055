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

Gid usual_loopback(bool is_ipv4) {
  if (!is_ipv4) return ipv6_loopback();
  Gid gid;
  gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  return gid;
}

}  // namespace

// Which device has the source address, and as which GID it goes out.
int Agent::bind_to_device(Id& id) {
  Device* device = device_of(id.source.gid, id.source.is_link_local() ? id.source.scope : 0);
  std::optional<Gid> goes_out_as = id.source.gid;
  if (device == nullptr && id.source.is_loopback()) {
    device = loopback_device(id.source.is_ipv4);
    if (device != nullptr) goes_out_as = device->any_gid(id.source.is_ipv4);
  }
  if (device == nullptr || !goes_out_as) return ENODEV;
  id.bind_to(device);
  id.route.source = *goes_out_as;
  return 0;
}

// What is bound has its port later, or does without one of its own.
int Agent::bind_address(Id& id, const Address& address) {
  if (id.state != IdState::kIdle) return EINVAL;
  if (address.is_link_local() && address.scope == 0) return EINVAL;
  id.source = address;
  if (!address.is_any()) {
    if (const int error = bind_to_device(id); error != 0) {
      id.source = {};
      // As from the kernel: an address of the host, but of no device, is no such device.
      const bool is_own = first_engine().port().is_own_address(address.gid);
      return is_own ? error : EADDRNOTAVAIL;
    }
  }
  id.state = IdState::kBound;
  return 0;
}

int Agent::bind(Id& id, const Address& address) {
  if (const int error = bind_address(id, address); error != 0) return error;
  if (const int error = claim_port(id); error != 0) {
    id.source = {};
    id.bind_to(nullptr);
    id.state = IdState::kIdle;
    return error;
  }
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
  if (error == 0 && device_of(from.gid, from.is_link_local() ? from.scope : 0) != nullptr) {
    return 0;
  }
  // An address that no table of the kernel's has may be behind a port that is not the kernel's.
  const auto own =
      std::ranges::find_if(devices_, [](const auto& device) { return device->is_on_its_own(); });
  if (own == devices_.end()) return error;
  const auto gid = (*own)->any_gid(destination.is_ipv4);
  if (!gid) return ENETUNREACH;
  from.gid = *gid;
  return 0;
}

// Whoever connects has a port that is drawn when it is known to where; there are more of them than
// the directory has room for.
int Agent::resolve_address(Id& id, const Address* source, const Address& destination,
                           Duration patience) {
  if (id.state == IdState::kIdle && source != nullptr && (!source->is_any() || source->port != 0)) {
    const int error = source->port != 0 ? bind(id, *source) : bind_address(id, *source);
    if (error != 0) return error;
  }
  if (id.state != IdState::kIdle && id.state != IdState::kBound) return EINVAL;
  if (id.is_infiniband) return EINVAL;
  Address from = id.source;
  const bool is_bound = id.state == IdState::kBound;
  if (is_bound && from.is_ipv4 != destination.is_ipv4) return EINVAL;
  from.is_ipv4 = destination.is_ipv4;
  Address to = destination;
  if (to.is_any()) to.gid = usual_loopback(to.is_ipv4);
  const bool is_loopback = to.is_loopback() && device_of(to.gid) == nullptr;
  if (const int error = choose_source(to, is_loopback, from); error != 0) return error;
  const Address former = std::exchange(id.source, from);
  if (const int error = bind_to_device(id); error != 0) {
    id.source = former;
    post(id, EventType::kAddressError, static_cast<std::uint32_t>(-error));
    return 0;
  }
  id.destination = to;
  if (id.source.port == 0 && !draw_port(id)) {
    take_source_back(id, former);
    return EADDRNOTAVAIL;
  }
  id.route.destination = is_loopback ? id.route.source : to.gid;
  id.route.traffic_class = id.type_of_service;
  std::optional<Gid> next_hop;
  if (!is_loopback) {
    if (const int error = ask_neighbour(*id.device, to.gid, next_hop); error != 0) {
      take_source_back(id, former);
      return error;
    }
  }
  if (next_hop) {
    wait_for_neighbour(id, *next_hop, patience, former);
  } else {
    finish_address(id);
  }
  return 0;
}

void Agent::take_source_back(Id& id, const Address& former) {
  if (former.port == 0) ports_.erase(id);
  id.source = former;
  id.destination = {};
  id.route.destination = {};
  if (!former.is_any()) return;
  id.bind_to(nullptr);
  id.route.source = {};
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
    take_source_back(id, wait.source_before);
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
