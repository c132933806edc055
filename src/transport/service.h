// SPDX-License-Identifier: BSD-2-Clause
// The services that a queue pair may give, numbered as ibv_qp_type numbers them. An extended
// reliable connection (XRC, IBTA annex 14) has two kinds of ends: requests go from initiator to
// target, and answers back. Both are a reliable connection of which one half is never used. Raw
// packets are Ethernet frames as the application makes them (raw_packet.h).
#pragma once

#include <cstdint>

#include "wire/opcode.h"

namespace uroce::transport {

enum class Service : std::uint8_t {
  kRc = 2,
  kUc = 3,
  kUd = 4,
  kRawPacket = 8,
  kXrcInitiator = 9,
  kXrcTarget = 10,
};

constexpr bool is_reliable(Service service) {
  constexpr unsigned kReliable = 1U << static_cast<unsigned>(Service::kRc) |
                                 1U << static_cast<unsigned>(Service::kXrcInitiator) |
                                 1U << static_cast<unsigned>(Service::kXrcTarget);
  return (kReliable >> static_cast<unsigned>(service) & 1) != 0;
}

constexpr wire::Service wire_service(Service service) {
  switch (service) {
    case Service::kRc:
      return wire::Service::kRc;
    case Service::kUc:
      return wire::Service::kUc;
    case Service::kUd:
      return wire::Service::kUd;
    case Service::kXrcInitiator:
    case Service::kXrcTarget:
      return wire::Service::kXrc;
    case Service::kRawPacket:
      break;  // no packet of RoCE reaches it
  }
  return wire::Service::kRc;
}

}  // namespace uroce::transport
