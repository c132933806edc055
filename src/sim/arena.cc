// SPDX-License-Identifier: BSD-2-Clause
#include "sim/arena.h"

#include "base/byte_order.h"

namespace uroce::sim {

Arena::Arena(std::uint32_t id, std::uint32_t bytes, Prng prng)
    : key_((id + 1) << 8 | prng.split(1).below(256)),
      iova_((std::uint64_t{id} + 1) << 32 | std::uint64_t{prng.split(2).below(1 << 16)} << 6),
      memory_(bytes) {
  for (std::uint32_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = to_big(prng.next());  // the same on every machine
    std::memcpy(&memory_[at], &word, std::min<std::size_t>(sizeof word, bytes - at));
  }
  expected_ = memory_;
}

std::uint32_t Arena::first_unexpected(Range r) const {
  std::uint32_t at = r.offset;
  while (memory_[at] == expected_[at]) ++at;
  return at;
}

}  // namespace uroce::sim
