// SPDX-License-Identifier: BSD-2-Clause
// The two words that may end a message's headers: immediate data (IBTA 9.3.6) and the R_Key to
// invalidate (IETH, 9.3.7).
#pragma once

#include <cstdint>

#include "base/byte_order.h"
#include "base/ids.h"
#include "wire/opcode.h"

namespace uroce::wire {

struct Immediate {
  std::uint32_t value = 0;  // as a number; verbs hands its bytes about in network order
  friend constexpr bool operator==(const Immediate&, const Immediate&) = default;
};

struct ImmediateWire {
  Be32 value;
};
static_assert(sizeof(ImmediateWire) == kImmediateBytes && alignof(ImmediateWire) == 1);

constexpr ImmediateWire to_wire(const Immediate& immediate) { return {Be32(immediate.value)}; }
constexpr Immediate from_wire(const ImmediateWire& wire) { return {wire.value.get()}; }

struct Ieth {
  RKey rkey{};
  friend constexpr bool operator==(const Ieth&, const Ieth&) = default;
};

struct IethWire {
  Be32 rkey;
};
static_assert(sizeof(IethWire) == kIethBytes && alignof(IethWire) == 1);

constexpr IethWire to_wire(const Ieth& ieth) { return {Be32(ieth.rkey.value)}; }
constexpr Ieth from_wire(const IethWire& wire) { return {{wire.rkey.get()}}; }

}  // namespace uroce::wire
