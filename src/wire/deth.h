// SPDX-License-Identifier: BSD-2-Clause
// Datagram extended transport header (IBTA 9.3.2): in every UD packet.
#pragma once

#include "base/byte_order.h"
#include "base/ids.h"
#include "wire/opcode.h"

namespace uroce::wire {

struct Deth {
  QKey qkey{};
  Qpn source{};
  friend constexpr bool operator==(const Deth&, const Deth&) = default;
};

struct DethWire {
  Be32 qkey;
  Be8_24 source;  // high byte reserved
};
static_assert(sizeof(DethWire) == kDethBytes && alignof(DethWire) == 1);

constexpr DethWire to_wire(const Deth& deth) {
  return {Be32(deth.qkey.value), Be8_24(0, deth.source.value)};
}
constexpr Deth from_wire(const DethWire& wire) { return {{wire.qkey.get()}, {wire.source.low()}}; }

}  // namespace uroce::wire
