// SPDX-License-Identifier: BSD-2-Clause
#include "engine/port.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace uroce::engine {
namespace {

bool is_loopback(const Gid& address) { return address.is_ipv4() && address.bytes[12] == 127; }

// Another program is at the files, or there is no descriptor left.
bool is_for_a_while(int error) {
  return error == ETIMEDOUT || error == EAGAIN || error == EMFILE || error == ENFILE;
}

}  // namespace

Port::Port(std::optional<host::HeldTree> tree, host::TreeDevice device,
           const host::HostNetwork& network, std::uint32_t own_mtu_bytes)
    : tree_(std::move(tree)),
      device_(std::move(device)),
      own_mtu_bytes_(own_mtu_bytes),
      interface_index_(device_.interface_index) {
  static_cast<void>(follow_interface(network));
  snapshot_ = snapshot_of(network, device_.gids);
  if (!tree_) return;
  if (auto monitor = host::AddressMonitor::open()) monitor_.emplace(std::move(*monitor));
  // What has changed since the tree was prepared nobody will tell any more.
  static_cast<void>(look_again());
}

Port::Snapshot Port::snapshot_of(const host::HostNetwork& network, host::GidTable gids) const {
  Snapshot s{.gids = gids, .own_addresses = {}, .facts = {}};
  for (const host::Interface& interface : network.interfaces) {
    for (const host::InterfaceAddress& address : interface.addresses) {
      s.own_addresses.push_back(address.address.gid);
    }
  }
  for (const Gid& gid : gids.slots()) {
    if (!gid.is_zero()) s.own_addresses.push_back(gid);
  }
  const host::Interface* interface = network.find(interface_index_, device_.netdev);
  if (interface != nullptr) {
    s.facts = {.active = interface->up && interface->running,
               .mtu_bytes = interface->mtu_bytes,
               .bits_per_second = std::uint64_t{interface->megabits_per_second} * 1'000'000,
               .interface_index = static_cast<unsigned>(interface->index)};
  } else if (device_.netdev.empty()) {
    s.facts.active = true;  // a port of its own, up as long as the program runs
    s.facts.mtu_bytes = own_mtu_bytes_;
  }
  return s;
}

PortFacts Port::facts() const {
  const std::lock_guard guard(mutex_);
  return snapshot_.facts;
}

std::optional<Gid> Port::gid(std::size_t index) const {
  const std::lock_guard guard(mutex_);
  const auto slots = snapshot_.gids.slots();
  if (index >= slots.size() || slots[index].is_zero()) return std::nullopt;
  return slots[index];
}

std::optional<std::size_t> Port::index_of(const Gid& gid) const {
  const std::lock_guard guard(mutex_);
  return snapshot_.gids.find(gid);
}

bool Port::is_own_address(const Gid& address) const {
  if (is_loopback(address)) return true;
  const std::lock_guard guard(mutex_);
  return std::ranges::find(snapshot_.own_addresses, address) != snapshot_.own_addresses.end();
}

int Port::change_descriptor() const { return monitor_ ? monitor_->descriptor() : -1; }

host::GidTable Port::read_gids() const {
  if (auto devices = host::read_device_tree(*tree_)) {
    for (const host::TreeDevice& device : *devices) {
      if (device.name == device_.name) return device.gids;
    }
  }
  const std::lock_guard guard(mutex_);
  return snapshot_.gids;
}

// Where somebody has removed the files: as the files would say it.
host::GidTable Port::follow_gids(const host::HostNetwork& network) const {
  host::GidTable gids;
  {
    const std::lock_guard guard(mutex_);
    gids = snapshot_.gids;
  }
  if (device_.netdev.empty()) return gids;
  const host::Interface* const interface = network.find(interface_index_, device_.netdev);
  gids.update(interface == nullptr ? std::vector<Gid>{}
                                   : host::gids_in_order(interface->addresses));
  return gids;
}

std::vector<PortEvent> Port::refresh() {
  const bool has_changed = monitor_ && monitor_->drain();
  return has_changed || is_behind_ ? look_again() : std::vector<PortEvent>{};
}

// Whether the interface that was there is deleted; one that comes again is another, also under the
// same name. A new name alone is no removal.
bool Port::follow_interface(const host::HostNetwork& network) {
  const host::Interface* const now = network.find(interface_index_, device_.netdev);
  const int former = std::exchange(interface_index_, now == nullptr ? 0 : now->index);
  return former != 0 && former != interface_index_;
}

std::vector<PortEvent> Port::look_again() {
  auto network = host::read_host_network();
  is_behind_ = !network;  // no descriptor left, perhaps
  if (is_behind_) return {};
  // Another process may have written the files already, so what counts is what they say now.
  const Result<bool> updated = host::update_gids(tree_->path, *network);
  is_behind_ = !updated && is_for_a_while(updated.error().code);
  if (is_behind_) return {};
  const bool is_removed = follow_interface(*network);
  const bool has_lost_files = !updated && updated.error().code == ENOENT;
  Snapshot now = snapshot_of(*network, has_lost_files ? follow_gids(*network) : read_gids());
  std::vector<PortEvent> events;
  const std::lock_guard guard(mutex_);
  if (!(now.gids == snapshot_.gids)) events.push_back(PortEvent::kGidChange);
  if (now.facts.active != snapshot_.facts.active) {
    events.push_back(now.facts.active ? PortEvent::kActive : PortEvent::kError);
  }
  now.facts.removals = snapshot_.facts.removals + (is_removed ? 1 : 0);
  // Of one that was down, or is there again already, nothing else may tell.
  if (is_removed && events.empty()) events.push_back(PortEvent::kError);
  std::swap(snapshot_, now);
  return events;
}

void Port::abandon_in_child() {
  monitor_.reset();
  tree_.reset();
}

}  // namespace uroce::engine
