// SPDX-License-Identifier: BSD-2-Clause
#include "cma/neighbours.h"

#include <net/if.h>

#include "datapath/neighbour/kernel_tables.h"
#include "posix/interface.h"

namespace uroce::cma {
namespace {

// One look is a few microseconds for each neighbour.
constexpr Duration kBetweenLooks = milliseconds(5);

bool asks_neighbours(const std::string& interface) {
  const unsigned flags = posix::interface_flags(interface);
  return flags != 0 && (flags & (IFF_NOARP | IFF_LOOPBACK)) == 0;
}

unsigned index_of(const Device& device) {
  return if_nametoindex(device.engine().port().device().netdev.c_str());
}

}  // namespace

std::optional<Gid> ask_neighbour(const Device& device, const Gid& destination) {
  const engine::Port& port = device.engine().port();
  if (device.is_on_its_own() || destination.is_multicast() || port.is_own_address(destination) ||
      !asks_neighbours(port.device().netdev)) {
    return std::nullopt;
  }
  const datapath::KernelTables tables(index_of(device));
  Gid next_hop;
  if (tables.find_next_hop(destination, next_hop) != 0) return std::nullopt;
  if (tables.is_reachable(next_hop)) return std::nullopt;
  tables.make_kernel_ask(next_hop);
  return next_hop;
}

void Neighbours::forget(const Id& id) {
  std::erase_if(waits_, [&id](const Wait& wait) { return wait.id == &id; });
}

Instant Neighbours::next_look(Instant now) const {
  return waits_.empty() ? Instant::never() : now + kBetweenLooks;
}

bool Neighbours::has_answered(const Wait& wait, Known& known) {
  const Device* const device = wait.id->device;
  if (known.device != device || known.next_hop != wait.next_hop) {
    const unsigned index = index_of(*device);  // 0: the interface has gone
    known = {device, wait.next_hop,
             index != 0 && datapath::KernelTables(index).is_reachable(wait.next_hop)};
  }
  return known.has_answered;
}

}  // namespace uroce::cma
