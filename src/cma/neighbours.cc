// SPDX-License-Identifier: BSD-2-Clause
#include "cma/neighbours.h"

#include <net/if.h>

#include <array>
#include <cerrno>

#include "datapath/neighbour/kernel_tables.h"
#include "posix/interface.h"

namespace uroce::cma {
namespace {

// One look is a few microseconds for each neighbour.
constexpr Duration kBetweenLooks = milliseconds(5);

bool asks_neighbours(unsigned interface) {
  std::array<char, IF_NAMESIZE> name{};
  if (if_indextoname(interface, name.data()) == nullptr) return false;
  const unsigned flags = posix::interface_flags(name.data());
  return flags != 0 && (flags & (IFF_NOARP | IFF_LOOPBACK)) == 0;
}

// And not that the kernel could not be asked.
bool leads_nowhere(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES;
}

}  // namespace

int ask_neighbour(const Device& device, const Gid& destination, std::optional<Gid>& next_hop) {
  const engine::Port& port = device.engine().port();
  if (device.is_on_its_own() || destination.is_multicast() || port.is_own_address(destination) ||
      !asks_neighbours(device.interface_index())) {
    return 0;
  }
  const datapath::KernelTables tables(device.interface_index());
  Gid found;
  if (const int error = tables.find_next_hop(destination, found); error != 0) {
    return leads_nowhere(error) ? error : 0;
  }
  if (tables.is_reachable(found)) return 0;
  tables.make_kernel_ask(found);
  next_hop = found;
  return 0;
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
    const unsigned index = device->interface_index();  // 0: the interface has gone
    known = {device, wait.next_hop,
             index != 0 && datapath::KernelTables(index).is_reachable(wait.next_hop)};
  }
  return known.has_answered;
}

}  // namespace uroce::cma
