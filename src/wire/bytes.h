// SPDX-License-Identifier: BSD-2-Clause
// Wire structs in and out of raw bytes, by memcpy: no alignment is assumed and no object is
// conjured up. A wire struct has alignment 1 and no padding, so its size is its size on the wire.
#pragma once

#include <cstddef>
#include <cstring>

namespace uroce::wire {

// The caller has seen to it that `sizeof(Wire)` bytes are there.
template <typename Wire>
Wire load(const std::byte* from) {
  static_assert(alignof(Wire) == 1);
  Wire wire;
  std::memcpy(&wire, from, sizeof wire);
  return wire;
}

// Returns where the next one goes.
template <typename Wire>
std::byte* store(std::byte* to, const Wire& wire) {
  static_assert(alignof(Wire) == 1);
  std::memcpy(to, &wire, sizeof wire);
  return to + sizeof wire;
}

}  // namespace uroce::wire
