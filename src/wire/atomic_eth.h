// SPDX-License-Identifier: BSD-2-Clause
// Atomic extended transport headers: of the request (IBTA 9.3.4) and of its answer (IBTA 9.5.3.2).
#pragma once

#include <cstdint>

#include "base/byte_order.h"
#include "base/ids.h"
#include "wire/opcode.h"

namespace uroce::wire {

struct AtomicEth {
  std::uint64_t virtual_address = 0;
  RKey rkey{};
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;  // 0 in a fetch-and-add
  friend constexpr bool operator==(const AtomicEth&, const AtomicEth&) = default;
};

struct AtomicEthWire {
  Be64 virtual_address;
  Be32 rkey;
  Be64 swap_or_add;
  Be64 compare;
};
static_assert(sizeof(AtomicEthWire) == kAtomicEthBytes && alignof(AtomicEthWire) == 1);

constexpr AtomicEthWire to_wire(const AtomicEth& eth) {
  return {Be64(eth.virtual_address), Be32(eth.rkey.value), Be64(eth.swap_or_add),
          Be64(eth.compare)};
}
constexpr AtomicEth from_wire(const AtomicEthWire& wire) {
  return {
      wire.virtual_address.get(), {wire.rkey.get()}, wire.swap_or_add.get(), wire.compare.get()};
}

struct AtomicAckEth {
  std::uint64_t original = 0;  // what the responder's memory held before
  friend constexpr bool operator==(const AtomicAckEth&, const AtomicAckEth&) = default;
};

struct AtomicAckEthWire {
  Be64 original;
};
static_assert(sizeof(AtomicAckEthWire) == kAtomicAckEthBytes && alignof(AtomicAckEthWire) == 1);

constexpr AtomicAckEthWire to_wire(const AtomicAckEth& eth) { return {Be64(eth.original)}; }
constexpr AtomicAckEth from_wire(const AtomicAckEthWire& wire) { return {wire.original.get()}; }

}  // namespace uroce::wire
