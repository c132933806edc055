// SPDX-License-Identifier: BSD-2-Clause
// Base transport header (IBTA 9.2). Reserved bits are sent as 0 and ignored when received.
//
//    0        8        16               31
//   +--------+-+-+--+----+----------------+
//   | opcode |S|M|Pd|TVer|     P_Key      |   S solicited event, M MigReq, Pd pad count
//   +--------+-+-+--+----+----------------+
//   |F|B|  0 |       destination QP       |   F FECN, B BECN; not covered by the ICRC
//   +--------+----------------------------+
//   |A|   0  |            PSN             |   A acknowledge request
//   +--------+----------------------------+
#pragma once

#include <cstdint>

#include "base/byte_order.h"
#include "base/ids.h"
#include "base/psn.h"
#include "wire/opcode.h"

namespace uroce::wire {

struct Bth {
  Opcode opcode{};
  bool solicited = false;
  bool mig_req = true;  // "migrated": what NICs send, and expect for an alternate path never set
  std::uint8_t pad_bytes = 0;
  PKey pkey{};
  bool fecn = false;
  bool becn = false;
  Qpn destination{};
  bool ack_request = false;
  Psn psn{};
  friend constexpr bool operator==(const Bth&, const Bth&) = default;
};

struct BthWire {
  static constexpr std::uint8_t kSolicited = 0x80, kMigReq = 0x40, kVersionMask = 0x0f;
  static constexpr unsigned kPadShift = 4;
  static constexpr std::uint8_t kFecn = 0x80, kBecn = 0x40;
  static constexpr std::uint8_t kAckRequest = 0x80;

  std::uint8_t opcode;
  std::uint8_t flags;
  Be16 pkey;
  Be8_24 congestion_and_destination;
  Be8_24 ack_request_and_psn;

  [[nodiscard]] constexpr std::uint8_t version() const { return flags & kVersionMask; }
};
static_assert(sizeof(BthWire) == kBthBytes && alignof(BthWire) == 1);

constexpr BthWire to_wire(const Bth& bth) {
  const unsigned flags = (bth.solicited ? BthWire::kSolicited : 0u) |
                         (bth.mig_req ? BthWire::kMigReq : 0u) |
                         (bth.pad_bytes & 3u) << BthWire::kPadShift;
  const unsigned congestion = (bth.fecn ? BthWire::kFecn : 0u) | (bth.becn ? BthWire::kBecn : 0u);
  return {.opcode = static_cast<std::uint8_t>(bth.opcode),
          .flags = static_cast<std::uint8_t>(flags),
          .pkey = Be16(bth.pkey.value),
          .congestion_and_destination =
              Be8_24(static_cast<std::uint8_t>(congestion), bth.destination.value),
          .ack_request_and_psn =
              Be8_24(bth.ack_request ? BthWire::kAckRequest : std::uint8_t{0}, bth.psn.value())};
}

constexpr Bth from_wire(const BthWire& wire) {
  const std::uint8_t congestion = wire.congestion_and_destination.high();
  return {.opcode = static_cast<Opcode>(wire.opcode),
          .solicited = (wire.flags & BthWire::kSolicited) != 0,
          .mig_req = (wire.flags & BthWire::kMigReq) != 0,
          .pad_bytes = static_cast<std::uint8_t>(wire.flags >> BthWire::kPadShift & 3),
          .pkey = {wire.pkey.get()},
          .fecn = (congestion & BthWire::kFecn) != 0,
          .becn = (congestion & BthWire::kBecn) != 0,
          .destination = {wire.congestion_and_destination.low()},
          .ack_request = (wire.ack_request_and_psn.high() & BthWire::kAckRequest) != 0,
          .psn = Psn(wire.ack_request_and_psn.low())};
}

// Payloads are padded to whole words (IBTA 9.2.3).
constexpr std::uint8_t pad_bytes_for(std::uint32_t payload_bytes) {
  return static_cast<std::uint8_t>(-payload_bytes & 3u);
}

}  // namespace uroce::wire
