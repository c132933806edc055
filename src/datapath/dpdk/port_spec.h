// SPDX-License-Identifier: BSD-2-Clause
// What follows "dpdk:": a PCI address or a virtual device with arguments, taken apart, and what is
// known of each poll-mode driver: who owns its port, which arguments it needs for packets of our
// size, which ones name the thing that only one process can have. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace uroce::datapath {

enum class PortOwner : std::uint8_t {
  kNobody,  // ARP and neighbour discovery are ours to do
  kKernel,  // an interface with addresses; the kernel sees the packets as well
};

struct DriverFacts {
  std::string_view driver;
  PortOwner owner = PortOwner::kNobody;
  std::string_view defaults = {};   // arguments added where the user gave none of that name
  std::string_view identity = {};   // arguments that name what only one process can have
  bool takes_everything = false;    // of the kernel's interface: ARP does not reach the kernel
  bool is_kept = false;             // until the process ends: see parked_ports.h
  bool has_interrupt = false;       // a descriptor that is readable while packets are there
  std::uint16_t descriptors = 512;  // of each queue
  unsigned mbufs = 4'095;           // packet buffers; few where the driver copies, to stay in cache
  std::uint16_t mbuf_bytes = 4608;  // of one packet buffer; a longer packet comes as a chain
  std::uint16_t port_mtu_bytes = 0;  // where DPDK's own idea of it is known to be wrong
  std::uint32_t window_bytes = 512 * 1024;
};

struct PortSpec {
  std::string device;     // "net_memif" or "0000:03:00.0"
  std::string arguments;  // with the defaults
  bool is_pci = false;
  const DriverFacts* facts = nullptr;

  // The value of an argument, empty where it is not given.
  [[nodiscard]] std::string_view argument(std::string_view key) const;
  // Equal for two ports that are the same thing; empty when any number may be opened.
  [[nodiscard]] std::string identity() const;
  // The longest IP packet that the port passes, where DPDK says `claimed`.
  [[nodiscard]] std::uint16_t mtu_bytes(std::uint16_t claimed) const;
  // Of one packet buffer.
  [[nodiscard]] std::uint16_t mbuf_bytes() const;
  // The other side may come later, or go and come again, and only a start looks for it: a memif
  // client.
  [[nodiscard]] bool connects_at_start() const;
  // The shared object with the driver; empty for PCI, where DPDK finds it by the device's ids.
  [[nodiscard]] std::string driver_library() const;
};

[[nodiscard]] Result<PortSpec> parse_port_spec(std::string_view spec,
                                               std::string_view interface = {});

}  // namespace uroce::datapath
