// SPDX-License-Identifier: BSD-2-Clause
// From received bytes to a validated packet. The one function that sees bytes nobody has checked;
// after it, every field that the opcode promises is there and the payload's bounds are right.
// What depends on a QP (PSN, order, keys, path MTU) is the transport's to check.
//
//   PacketView view;
//   if (DropReason reason = parse(packet, view); reason != DropReason::kNone) return drop(reason);
//   if (view.opcode->reth) use(view.reth);
//
// Wrong: reading view.reth of an opcode that has none; it is left over from an earlier packet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "uroce/packet.h"
#include "wire/headers.h"

namespace uroce::wire {

enum class DropReason : std::uint8_t {
  kNone,
  kTooShort,          // for a BTH
  kBadVersion,        // transport version other than 0
  kUnknownOpcode,     // reserved, or of a service that we do not speak
  kTruncatedHeaders,  // too short for the extension headers of its opcode
  kBadPad,            // more pad than there are bytes after the headers
  kBadLength,         // no whole number of words, or bytes where the opcode allows none
  kBadRun,            // a packet count that its payload cannot have
};
inline constexpr std::size_t kDropReasonCount = 8;

constexpr std::string_view name(DropReason reason) {
  switch (reason) {
    case DropReason::kNone:
      return "none";
    case DropReason::kTooShort:
      return "too short";
    case DropReason::kBadVersion:
      return "bad version";
    case DropReason::kUnknownOpcode:
      return "unknown opcode";
    case DropReason::kTruncatedHeaders:
      return "truncated headers";
    case DropReason::kBadPad:
      return "bad pad";
    case DropReason::kBadLength:
      return "bad length";
    case DropReason::kBadRun:
      return "bad run";
  }
  return "?";
}

struct PacketView {
  const OpcodeInfo* opcode = nullptr;
  const RxPacket* packet = nullptr;  // for the addresses
  ConstBytes payload{};              // without pad
  std::uint16_t packet_count = 1;    // of the run that this is; bth.psn is that of its first packet
  Bth bth{};
  // Meaningful where `opcode` says so.
  Deth deth{};
  Xrceth xrceth{};
  Feth feth{};
  Reth reth{};
  AtomicEth atomic_eth{};
  Aeth aeth{};
  AtomicAckEth atomic_ack_eth{};
  Immediate immediate{};
  Ieth ieth{};
};

// Fills `view` from `packet`, whose bytes it keeps referring to. On any reason but kNone what
// `view` holds means nothing.
[[nodiscard]] DropReason parse(const RxPacket& packet, PacketView& view);

}  // namespace uroce::wire
