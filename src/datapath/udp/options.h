// SPDX-License-Identifier: BSD-2-Clause
// What a caller of UdpDatapath::create decides; everything else is probed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "uroce/datapath.h"

namespace uroce::datapath {

// UDP_SEGMENT lets one system call send up to 64 KiB of packets. The ICRC covers the IPv4
// identification, so whoever cuts a train must number the packets as Linux does: 0, 1, 2 ...
// `kWhereNumbered` trusts loopback and devices on which the kernel cuts, not a NIC's own engine.
enum class Segmentation : std::uint8_t { kWhereNumbered, kNever, kAlways };

inline constexpr std::uint16_t kRocePort = 4791;

struct UdpOptions {
  std::string interface = "lo";
  std::uint32_t interface_mtu = 65'536;
  std::uint16_t port = kRocePort;  // another one reaches only peers that use the same
  bool verify_icrc = true;
  Segmentation segmentation = Segmentation::kWhereNumbered;
  std::size_t sending_sockets = 8;  // per address family; each is a source port
  std::uint64_t bits_per_second = 0;
  DatapathCounters* counters = nullptr;  // where it counts, outliving it; null: its own
};

}  // namespace uroce::datapath
