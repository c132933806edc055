// SPDX-License-Identifier: BSD-2-Clause
// The one port of a device as it is now: its GID table, its state, and which addresses belong to
// this host. Read by verbs, brought up to date by the helper thread when the kernel says that links
// or addresses have changed. Any thread may call.
//
// The files of the device tree are the one truth about which index an address has, because
// ibv_query_gid reads them; this is a copy.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "host/address_monitor.h"
#include "host/device_files.h"
#include "host/device_tree.h"
#include "host/gid_table.h"
#include "host/interfaces.h"
#include "uroce/ids.h"

namespace uroce::engine {

// As ibv_event_type.
enum class PortEvent : std::uint8_t { kActive = 9, kError = 10, kGidChange = 18 };

struct PortFacts {
  bool active = false;
  std::uint32_t mtu_bytes = 0;
  std::uint64_t bits_per_second = 0;  // 0: not known
  unsigned interface_index = 0;       // as the kernel numbers it now; 0: there is none
  std::uint32_t removals = 0;         // how often its interface was deleted since it was opened
};

class Port {
 public:
  // `tree` was held when `device` was read from it, so that no index has moved since; without one
  // nothing ever changes (tests). `own_mtu_bytes` is of a port that is no interface of the
  // kernel's.
  Port(std::optional<host::HeldTree> tree, host::TreeDevice device,
       const host::HostNetwork& network, std::uint32_t own_mtu_bytes = 0);

  [[nodiscard]] const host::TreeDevice& device() const { return device_; }
  [[nodiscard]] PortFacts facts() const;
  // Nothing behind the table's end and for an empty slot.
  [[nodiscard]] std::optional<Gid> gid(std::size_t index) const;
  [[nodiscard]] std::optional<std::size_t> index_of(const Gid& gid) const;
  // An address of this host, in this network namespace, whichever interface has it.
  [[nodiscard]] bool is_own_address(const Gid& address) const;

  // -1 when there is nothing to be heard.
  [[nodiscard]] int change_descriptor() const;
  // What has changed since the last time; reads the kernel's tables.
  [[nodiscard]] std::vector<PortEvent> refresh();
  // There was a change that could not be followed, since another program was at the files:
  // refresh() is due again soon.
  [[nodiscard]] bool is_behind() const { return is_behind_; }

  void abandon_in_child();

 private:
  struct Snapshot {
    host::GidTable gids;
    std::vector<Gid> own_addresses;
    PortFacts facts;
  };
  [[nodiscard]] Snapshot snapshot_of(const host::HostNetwork& network, host::GidTable gids) const;
  [[nodiscard]] host::GidTable read_gids() const;
  [[nodiscard]] host::GidTable follow_gids(const host::HostNetwork& network) const;
  [[nodiscard]] std::vector<PortEvent> look_again();
  [[nodiscard]] bool follow_interface(const host::HostNetwork& network);

  std::optional<host::HeldTree> tree_;
  host::TreeDevice device_;
  std::uint32_t own_mtu_bytes_ = 0;
  int interface_index_ = 0;  // 0: there is none now; of the helper thread
  std::optional<host::AddressMonitor> monitor_;
  bool is_behind_ = false;  // of the helper thread
  mutable std::mutex mutex_;
  Snapshot snapshot_;
};

}  // namespace uroce::engine
