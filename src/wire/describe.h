// SPDX-License-Identifier: BSD-2-Clause
// A packet as one line of text, the same in logs, test failures and dumps:
//
//   RC WRITE_FIRST qpn=0x000012 psn=0x0a0003 va=0x200000000000 rkey=0x000003c4 dma=1027
//   payload=1024 RC ACKNOWLEDGE qpn=0x000012 psn=0x0a0004 nak=psn_sequence msn=3
//
// Fields that have their usual value (P_Key 0xffff, MigReq 1, no flags, no pad) are left out.
#pragma once

#include <span>
#include <string_view>

#include "uroce/packet.h"
#include "wire/aeth.h"
#include "wire/parse.h"

namespace uroce::wire {

// Room for the longest line there is; into less, a line is cut off.
inline constexpr std::size_t kDescriptionChars = 256;

// The text lies in `out`.
std::string_view describe(const PacketView& view, std::span<char> out);

// Of bytes not parsed yet; says why where they cannot be.
std::string_view describe(const RxPacket& packet, std::span<char> out);

[[nodiscard]] std::string_view name(Service service);
[[nodiscard]] std::string_view name(Kind kind);
[[nodiscard]] std::string_view name(NakCode code);

}  // namespace uroce::wire
