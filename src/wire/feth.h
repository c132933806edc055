// SPDX-License-Identifier: BSD-2-Clause
// FLUSH extended transport header (IBTA annex 19): what is wanted of the data (placement type) and
// of how much of them (selectivity). It stands before the RETH.
//
//    31                      6 5     4 3           0
//   +-------------------------+-------+-------------+
//   |         reserved        | sel   | type (bits) |
//   +-------------------------+-------+-------------+
#pragma once

#include <cstdint>

#include "base/byte_order.h"
#include "wire/opcode.h"

namespace uroce::wire {

enum class FlushSelectivity : std::uint8_t { kRange = 0, kRegion = 1 };

struct Feth {
  static constexpr std::uint8_t kGlobalVisibility = 1;
  static constexpr std::uint8_t kPersistence = 2;

  std::uint8_t placement = 0;  // both may be asked for
  FlushSelectivity selectivity = FlushSelectivity::kRange;
  friend constexpr bool operator==(const Feth&, const Feth&) = default;

  [[nodiscard]] constexpr bool is_known() const {
    return placement != 0 && (placement & ~(kGlobalVisibility | kPersistence)) == 0 &&
           selectivity <= FlushSelectivity::kRegion;
  }
};

struct FethWire {
  Be32 bits;
};
static_assert(sizeof(FethWire) == kFethBytes && alignof(FethWire) == 1);

constexpr FethWire to_wire(const Feth& feth) {
  return {Be32(static_cast<std::uint32_t>(feth.selectivity) << 4 | feth.placement)};
}
constexpr Feth from_wire(const FethWire& wire) {
  const std::uint32_t bits = wire.bits.get();
  return {static_cast<std::uint8_t>(bits & 0xf), static_cast<FlushSelectivity>(bits >> 4 & 3)};
}

}  // namespace uroce::wire
