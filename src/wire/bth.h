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
#include "wire/bytes.h"
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
  Be32 opcode_flags_pkey;
  Be8_24 congestion_and_destination;
  Be8_24 ack_request_and_psn;
};
static_assert(sizeof(BthWire) == kBthBytes && alignof(BthWire) == 1);

// The three words as numbers. Headers of packets go in and out by these and not by a BthWire: g++
// puts one together on the stack by words and reads it back by twos, which costs a failed store
// forwarding, three times as long as all the rest.
struct BthWords {
  static constexpr std::uint32_t kSolicited = 1u << 23, kMigReq = 1u << 22;
  static constexpr std::uint32_t kFecn = 1u << 31, kBecn = 1u << 30;
  static constexpr std::uint32_t kAckRequest = 1u << 31;
  static constexpr unsigned kOpcodeShift = 24, kPadShift = 20, kVersionShift = 16;

  std::uint32_t opcode_flags_pkey = 0;
  std::uint32_t congestion_and_destination = 0;
  std::uint32_t ack_request_and_psn = 0;

  [[nodiscard]] constexpr Opcode opcode() const {
    return static_cast<Opcode>(opcode_flags_pkey >> kOpcodeShift);
  }
  [[nodiscard]] constexpr unsigned version() const {
    return opcode_flags_pkey >> kVersionShift & 15;
  }
  [[nodiscard]] constexpr Psn psn() const { return Psn(ack_request_and_psn); }

  constexpr void set_opcode(Opcode opcode) {
    opcode_flags_pkey = (opcode_flags_pkey & ~(255u << kOpcodeShift)) |
                        static_cast<std::uint32_t>(opcode) << kOpcodeShift;
  }
  constexpr void set_pad(std::uint8_t bytes) {
    opcode_flags_pkey = (opcode_flags_pkey & ~(3u << kPadShift)) | std::uint32_t{bytes}
                                                                       << kPadShift;
  }
  constexpr void set_psn(Psn psn) {
    ack_request_and_psn = (ack_request_and_psn & kAckRequest) | psn.value();
  }
};

constexpr BthWords to_words(const Bth& bth) {
  using Words = BthWords;
  return {.opcode_flags_pkey = static_cast<std::uint32_t>(bth.opcode) << Words::kOpcodeShift |
                               (bth.solicited ? Words::kSolicited : 0) |
                               (bth.mig_req ? Words::kMigReq : 0) |
                               (bth.pad_bytes & 3u) << Words::kPadShift | bth.pkey.value,
          .congestion_and_destination = (bth.fecn ? Words::kFecn : 0) |
                                        (bth.becn ? Words::kBecn : 0) |
                                        (bth.destination.value & 0xff'ffff),
          .ack_request_and_psn = (bth.ack_request ? Words::kAckRequest : 0) | bth.psn.value()};
}

constexpr Bth from_words(const BthWords& words) {
  using Words = BthWords;
  const std::uint32_t first = words.opcode_flags_pkey;
  return {.opcode = words.opcode(),
          .solicited = (first & Words::kSolicited) != 0,
          .mig_req = (first & Words::kMigReq) != 0,
          .pad_bytes = static_cast<std::uint8_t>(first >> Words::kPadShift & 3),
          .pkey = {static_cast<std::uint16_t>(first)},
          .fecn = (words.congestion_and_destination & Words::kFecn) != 0,
          .becn = (words.congestion_and_destination & Words::kBecn) != 0,
          .destination = {words.congestion_and_destination & 0xff'ffff},
          .ack_request = (words.ack_request_and_psn & Words::kAckRequest) != 0,
          .psn = Psn(words.ack_request_and_psn)};
}

// The caller has seen to it that kBthBytes are there.
inline BthWords load_bth(const std::byte* from) {
  return {load<Be32>(from).get(), load<Be32>(from + 4).get(), load<Be32>(from + 8).get()};
}

// Returns where the next header goes.
inline std::byte* store_bth(std::byte* to, const BthWords& words) {
  to = store(to, Be32(words.opcode_flags_pkey));
  to = store(to, Be32(words.congestion_and_destination));
  return store(to, Be32(words.ack_request_and_psn));
}

// Payloads are padded to whole words (IBTA 9.2.3).
constexpr std::uint8_t pad_bytes_for(std::uint32_t payload_bytes) {
  return static_cast<std::uint8_t>(-payload_bytes & 3u);
}

}  // namespace uroce::wire
