// SPDX-License-Identifier: BSD-2-Clause
// Which process a packet to QP1 is for, where several share an address: QP1 belongs to all of them.
// A request to connect names a service and an address; every other message of the communication
// manager names a connection by an identifier that its receiver has chosen, and here those are
// chosen so that their upper half is a block of QPNs, whose owner is known (base/ids.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "uroce/ids.h"
#include "uroce/packet.h"

namespace uroce::wire {

inline constexpr Qpn kManagementQpn{1};

constexpr std::uint32_t block_of_identifier(std::uint32_t identifier) { return identifier >> 16; }
constexpr std::uint32_t identifier_in_block(std::uint32_t block, std::uint16_t number) {
  return block << 16 | number;
}

// Offsets from the BTH on, for a filter too: the attribute tells the messages apart, and the upper
// half of an identifier stands where it begins.
inline constexpr std::size_t kOffsetOfAttribute = 20 + 16;
inline constexpr std::size_t kOffsetOfRequestIdentifier = 20 + 24;  // of a SIDR reply
inline constexpr std::size_t kOffsetOfRemoteIdentifier = 20 + 28;   // of all others
inline constexpr std::uint16_t kConnectRequestAttribute = 0x10;
inline constexpr std::uint16_t kSidrRequestAttribute = 0x17;
inline constexpr std::uint16_t kSidrReplyAttribute = 0x18;

struct ManagementAddressee {
  bool is_service = false;
  std::uint32_t block = 0;       // of an identifier
  std::uint64_t service_id = 0;  // of a service
  Gid address;                   // ... and where it is asked for
};
// Nothing for what is no whole message of the communication manager: of a packet, to QP1; of a
// management datagram alone.
[[nodiscard]] std::optional<ManagementAddressee> addressee_of_packet(ConstBytes packet);
[[nodiscard]] std::optional<ManagementAddressee> addressee_of_mad(ConstBytes mad);

}  // namespace uroce::wire
