// SPDX-License-Identifier: BSD-2-Clause
// Datagrams that the sockets of one reuseport group send each other over loopback: a packet that
// reached the wrong member, passed on, and the probe by which a member finds its own index.
//
// They arrive on the RoCE port among packets from anywhere, so each carries the group's secret,
// which only processes that may read the group's file know. Their first byte is an opcode that the
// standard leaves to manufacturers and nobody sends; the steering program knows it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/byte_order.h"
#include "uroce/ids.h"

namespace uroce::datapath::udp {

inline constexpr std::uint8_t kControlOpcode = 0xff;
inline constexpr std::uint32_t kOffsetOfControlMember = 2;

using Secret = std::array<std::byte, 16>;

enum class ControlKind : std::uint8_t { kProbe = 1, kForwarded = 2 };

struct ControlHeader {
  std::uint8_t opcode = kControlOpcode;
  ControlKind kind = ControlKind::kProbe;
  Be16 member;     // where the steering program sends it
  Be32 round;      // of a probe: one round finds one index
  Be64 recipient;  // whom it is for: the identity of a member, which never moves
  Secret secret{};
};

// Follows the header of a forwarded packet; the packet, without its ICRC, follows this.
struct ForwardedFrom {
  Gid source;
  Gid destination;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  Be16 reserved;
};

static_assert(sizeof(ControlHeader) == 32 && alignof(ControlHeader) == 1);
static_assert(sizeof(ForwardedFrom) == 36 && alignof(ForwardedFrom) == 1);
static_assert(offsetof(ControlHeader, member) == kOffsetOfControlMember);
static_assert(std::is_trivially_copyable_v<ControlHeader>);

}  // namespace uroce::datapath::udp
