// SPDX-License-Identifier: BSD-2-Clause
#include "sim/arena.h"

#include "sim/fill.h"

namespace uroce::sim {

Arena::Arena(std::uint32_t id, std::uint32_t bytes, Prng prng)
    : key_((id + 1) << 8 | prng.split(1).below(256)),
      iova_((std::uint64_t{id} + 1) << 32 | std::uint64_t{prng.split(2).below(1 << 16)} << 6),
      bytes_(bytes),
      memory_(std::make_unique_for_overwrite<std::byte[]>(bytes)),
      expected_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {
  fill({memory_.get(), bytes}, prng);
  std::memcpy(expected_.get(), memory_.get(), bytes);
}

std::uint32_t Arena::first_unexpected(Range r) const {
  std::uint32_t at = r.offset;
  while (memory_[at] == expected_[at]) ++at;
  return at;
}

}  // namespace uroce::sim
