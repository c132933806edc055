// SPDX-License-Identifier: BSD-2-Clause
#include "cma/device.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "host/port_attributes.h"

namespace uroce::cma {

std::unique_ptr<Device> Device::open(const std::string& name) {
  verbs::Context* const context = verbs::Context::open(name.c_str());
  if (context == nullptr) return nullptr;
  std::unique_ptr<Device> device(new Device(*context));
  const int events = device->change_descriptor();
  if (fcntl(events, F_SETFL, fcntl(events, F_GETFL) | O_NONBLOCK) != 0) return nullptr;
  device->port_ = ManagementPort::open(*context);
  if (device->port_ == nullptr) return nullptr;
  return device;
}

Device::~Device() {
  const int error = errno;
  const int events = context_->async_descriptor();
  port_.reset();
  context_.reset();
  close(events);
  errno = error;
}

std::uint64_t Device::node_guid() const { return engine().port().device().node_guid; }

std::uint8_t Device::path_mtu() const {
  const std::uint16_t bytes = host::port_path_mtu(engine().port().facts().mtu_bytes);
  std::uint8_t code = 1;
  while ((128 << code) < bytes) ++code;
  return code;
}

bool Device::is_active() const { return engine().port().facts().active; }

std::optional<std::uint8_t> Device::gid_index(const Gid& gid) const {
  const auto index = engine().port().index_of(gid);
  return index ? std::optional(static_cast<std::uint8_t>(*index)) : std::nullopt;
}

std::optional<Gid> Device::any_gid(bool is_ipv4) const {
  for (std::size_t i = 0; i < host::GidTable::kLength; ++i) {
    const auto gid = engine().port().gid(i);
    if (gid && !gid->is_zero() && gid->is_ipv4() == is_ipv4) return gid;
  }
  return std::nullopt;
}

// What the events say the port knows itself.
void Device::drain_changes() {
  std::array<std::byte, 4096> events;
  while (::read(change_descriptor(), events.data(), events.size()) > 0) {
  }
}

std::uint32_t Device::interface_index() const { return engine().port().facts().interface_index; }

std::uint32_t Device::removals() const { return engine().port().facts().removals; }

bool Device::is_on_its_own() const { return engine().port().device().netdev.empty(); }

}  // namespace uroce::cma
