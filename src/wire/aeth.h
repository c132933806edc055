// SPDX-License-Identifier: BSD-2-Clause
// ACK extended transport header (IBTA 9.3.5): a syndrome and the responder's MSN.
//
// The syndrome (IBTA 9.7.5.1) is a byte: reserved bit, two bits of kind, five of value.
//
//   00 ACK      value: credit code, or 31 where the responder gives none (SRQ, and we always)
//   01 RNR NAK  value: index into the table of RNR timers
//   10 reserved
//   11 NAK      value: NAK code
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.h"
#include "base/ids.h"
#include "uroce/time.h"
#include "wire/opcode.h"

namespace uroce::wire {

enum class NakCode : std::uint8_t {
  kPsnSequence = 0,
  kInvalidRequest = 1,
  kRemoteAccess = 2,
  kRemoteOperational = 3,
  kInvalidRdRequest = 4,
};
inline constexpr unsigned kNakCodeCount = 5;

enum class SyndromeKind : std::uint8_t { kAck = 0, kRnrNak = 1, kReserved = 2, kNak = 3 };

// Responder's credits are not tracked: the requester may send as it likes.
inline constexpr std::uint8_t kCreditCodeNone = 31;

struct Syndrome {
  std::uint8_t value = 0;

  static constexpr Syndrome ack(std::uint8_t credit_code = kCreditCodeNone) {
    return make(SyndromeKind::kAck, credit_code);
  }
  static constexpr Syndrome rnr_nak(std::uint8_t timer) {
    return make(SyndromeKind::kRnrNak, timer);
  }
  static constexpr Syndrome nak(NakCode code) {
    return make(SyndromeKind::kNak, static_cast<std::uint8_t>(code));
  }

  [[nodiscard]] constexpr SyndromeKind kind() const {
    return static_cast<SyndromeKind>(value >> 5 & 3);
  }
  [[nodiscard]] constexpr bool is_ack() const { return kind() == SyndromeKind::kAck; }
  // The low five bits, to be read by kind.
  [[nodiscard]] constexpr std::uint8_t credit_code() const { return value & 31; }
  [[nodiscard]] constexpr std::uint8_t rnr_timer() const { return value & 31; }
  [[nodiscard]] constexpr NakCode nak_code() const { return static_cast<NakCode>(value & 31); }
  // False for what the standard reserves; the requester takes that for a bad response.
  [[nodiscard]] constexpr bool is_known() const {
    return kind() != SyndromeKind::kReserved &&
           (kind() != SyndromeKind::kNak || (value & 31) < kNakCodeCount);
  }

  friend constexpr bool operator==(Syndrome, Syndrome) = default;

 private:
  static constexpr Syndrome make(SyndromeKind kind, std::uint8_t low) {
    return {static_cast<std::uint8_t>(static_cast<unsigned>(kind) << 5 | (low & 31u))};
  }
};

struct Aeth {
  Syndrome syndrome{};
  Msn msn{};
  friend constexpr bool operator==(const Aeth&, const Aeth&) = default;
};

struct AethWire {
  Be8_24 syndrome_and_msn;
};
static_assert(sizeof(AethWire) == kAethBytes && alignof(AethWire) == 1);

constexpr AethWire to_wire(const Aeth& aeth) {
  return {Be8_24(aeth.syndrome.value, aeth.msn.value)};
}
constexpr Aeth from_wire(const AethWire& wire) {
  return {{wire.syndrome_and_msn.high()}, {wire.syndrome_and_msn.low()}};
}

// IBTA table 45: how long a requester waits after an RNR NAK, by the 5-bit code.
inline constexpr std::array<Duration, 32> kRnrTimers = [] {
  constexpr std::array<std::int32_t, 32> kTensOfMicroseconds = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  std::array<Duration, 32> timers{};
  for (std::size_t i = 0; i < timers.size(); ++i) {
    timers[i] = microseconds(std::int64_t{10} * kTensOfMicroseconds[i]);
  }
  return timers;
}();
static_assert(kRnrTimers[0] == microseconds(655'360) && kRnrTimers[1] == microseconds(10) &&
              kRnrTimers[20] == microseconds(10'240) && kRnrTimers[31] == microseconds(491'520));

// IBTA table 46: receive WQEs that a credit code stands for; code 31 gives none.
inline constexpr std::array<std::uint16_t, 31> kCredits = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

// The code for the most credits that is not more than `receives`.
constexpr std::uint8_t credit_code_for(std::uint32_t receives) {
  std::uint8_t code = 0;
  while (code + 1u < kCredits.size() && kCredits[code + 1u] <= receives) ++code;
  return code;
}
static_assert(credit_code_for(0) == 0 && credit_code_for(5) == 4 &&
              credit_code_for(1'000'000) == 30);

}  // namespace uroce::wire
