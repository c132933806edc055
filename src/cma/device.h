// SPDX-License-Identifier: BSD-2-Clause
// A device as the communication manager sees it: open, with a QP1, with addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cma/address.h"
#include "cma/management_port.h"

namespace uroce::cma {

class Device {
 public:
  // Null, and errno.
  static std::unique_ptr<Device> open(const std::string& name);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  [[nodiscard]] engine::Engine& engine() const { return context_->engine(); }
  [[nodiscard]] ManagementPort& port() { return *port_; }
  [[nodiscard]] std::uint64_t node_guid() const;
  // IBTA's code of the largest path MTU.
  [[nodiscard]] std::uint8_t path_mtu() const;
  [[nodiscard]] bool is_active() const;
  [[nodiscard]] std::optional<std::uint8_t> gid_index(const Gid& gid) const;
  // The first of the family.
  [[nodiscard]] std::optional<Gid> any_gid(bool is_ipv4) const;
  // As the kernel numbers it now; 0 where there is none.
  [[nodiscard]] std::uint32_t interface_index() const;
  // How often its interface was deleted.
  [[nodiscard]] std::uint32_t removals() const;
  // No interface of the kernel's: its addresses are in no routing table.
  [[nodiscard]] bool is_on_its_own() const;

  // Readable when the port has changed.
  [[nodiscard]] int change_descriptor() const { return context_->async_descriptor(); }
  // After it was.
  void drain_changes();

 private:
  explicit Device(verbs::Context& context) : context_(&context) {}

  verbs::OpenContext context_;
  std::unique_ptr<ManagementPort> port_;
};

}  // namespace uroce::cma
