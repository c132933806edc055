// SPDX-License-Identifier: BSD-2-Clause
// How a message is cut into packets. Pure arithmetic, and the only place for it. A path MTU is a
// power of two, so that nothing is divided: a 64-bit division costs as much as the rest of a
// packet's way through the requester.
#pragma once

#include <bit>
#include <cstdint>

#include "base/psn.h"

namespace uroce::transport {

// A message of no bytes is one packet all the same.
constexpr std::uint32_t packets_in(std::uint64_t bytes, std::uint32_t path_mtu) {
  const int shift = std::countr_zero(path_mtu);
  return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + path_mtu - 1) >> shift);
}

// How many packets fit `bytes`; at least one goes.
constexpr std::uint32_t packets_within(std::uint32_t bytes, std::uint32_t path_mtu) {
  const std::uint32_t packets = bytes >> std::countr_zero(path_mtu);
  return packets == 0 ? 1 : packets;
}

// Where in its message the packet `psn` begins.
constexpr std::uint64_t offset_of(Psn first, Psn psn, std::uint32_t path_mtu) {
  return std::uint64_t{static_cast<std::uint32_t>(distance(first, psn))} * path_mtu;
}

// IBTA 9.7.7.1: what a message may be.
inline constexpr std::uint32_t kMessageBytesMax = 0x8000'0000;

static_assert(packets_in(0, 256) == 1 && packets_in(256, 256) == 1 && packets_in(257, 256) == 2);
static_assert(packets_in(kMessageBytesMax, 256) == 0x80'0000);
static_assert(packets_within(65'535, 4096) == 15 && packets_within(100, 256) == 1);
static_assert(offset_of(Psn(0xff'ffff), Psn(1), 1024) == 2048);

}  // namespace uroce::transport
