// SPDX-License-Identifier: BSD-2-Clause
// XRC extended transport header (IBTA annex 14): in every request of an extended reliable
// connection, right behind the BTH; it names the shared receive queue that is meant.
#pragma once

#include "base/byte_order.h"
#include "base/ids.h"
#include "uroce/packet.h"
#include "wire/opcode.h"

namespace uroce::wire {

struct Xrceth {
  Qpn srq{};
  friend constexpr bool operator==(const Xrceth&, const Xrceth&) = default;
};

struct XrcethWire {
  Be8_24 srq;  // high byte reserved
};
static_assert(sizeof(XrcethWire) == kXrcethBytes && alignof(XrcethWire) == 1);

constexpr XrcethWire to_wire(const Xrceth& xrceth) { return {Be8_24(0, xrceth.srq.value)}; }
constexpr Xrceth from_wire(const XrcethWire& wire) { return {{wire.srq.low()}}; }

// A frame that is a request of RC becomes one of XRC, with one header more.
void make_xrc(TxFrame& frame, const Xrceth& xrceth);

}  // namespace uroce::wire
