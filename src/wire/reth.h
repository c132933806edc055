// SPDX-License-Identifier: BSD-2-Clause
// RDMA extended transport header (IBTA 9.3.3): where in the responder's memory, and how much. In
// the first packet of a WRITE and in a READ request.
#pragma once

#include <cstdint>

#include "base/byte_order.h"
#include "base/ids.h"
#include "wire/bytes.h"
#include "wire/opcode.h"

namespace uroce::wire {

struct Reth {
  std::uint64_t virtual_address = 0;
  RKey rkey{};
  std::uint32_t dma_bytes = 0;  // of the whole message
  friend constexpr bool operator==(const Reth&, const Reth&) = default;
};

struct RethWire {
  Be64 virtual_address;
  Be32 rkey;
  Be32 dma_bytes;
};
static_assert(sizeof(RethWire) == kRethBytes && alignof(RethWire) == 1);

constexpr RethWire to_wire(const Reth& reth) {
  return {Be64(reth.virtual_address), Be32(reth.rkey.value), Be32(reth.dma_bytes)};
}
constexpr Reth from_wire(const RethWire& wire) {
  return {wire.virtual_address.get(), {wire.rkey.get()}, wire.dma_bytes.get()};
}

// As store(to, to_wire(reth)), field by field: put together on the stack first and copied in one
// piece, the copy would wait for the narrower stores.
inline std::byte* store_header(std::byte* to, const Reth& reth) {
  to = store(to, Be64(reth.virtual_address));
  to = store(to, Be32(reth.rkey.value));
  return store(to, Be32(reth.dma_bytes));
}

}  // namespace uroce::wire
