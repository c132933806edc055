// SPDX-License-Identifier: BSD-2-Clause
// The largest RoCE path MTU of which an interface carries every packet, of IPv6 and with the
// longest headers that a payload may have. Linux's rxe takes off 80 bytes, which a WRITE with
// immediate in one packet does not fit into.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "wire/icrc.h"
#include "wire/network.h"
#include "wire/opcode.h"

namespace uroce::wire {

constexpr std::size_t longest_headers_of_payload() {
  std::size_t longest = 0;
  for (const OpcodeInfo& info : kOpcodes) {
    if (info.payload) longest = std::max<std::size_t>(longest, info.header_bytes);
  }
  return longest;
}

// What an interface's MTU covers of a packet besides its payload, at most.
inline constexpr std::size_t kPacketOverheadMax =
    kIpv6HeaderBytes + kUdpHeaderBytes + longest_headers_of_payload() + kIcrcBytes;

constexpr std::uint16_t path_mtu_of(std::uint32_t interface_mtu) {
  for (const std::uint16_t path_mtu : std::array<std::uint16_t, 4>{4096, 2048, 1024, 512}) {
    if (interface_mtu >= path_mtu + kPacketOverheadMax) return path_mtu;
  }
  return 256;
}

}  // namespace uroce::wire
