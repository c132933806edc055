// SPDX-License-Identifier: BSD-2-Clause
#include "sim/arena.h"

#include "base/byte_order.h"

namespace uroce::sim {
namespace {

// So many random bytes, over and over. Nothing that is misplaced is so by a multiple of a prime.
inline constexpr std::size_t kWordsOfPattern = 4093;

// The same on every machine.
void fill(std::span<std::byte> memory, Prng& prng) {
  const std::size_t own = std::min(memory.size(), kWordsOfPattern * sizeof(std::uint64_t));
  for (std::size_t at = 0; at < own; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = to_big(prng.next());
    std::memcpy(&memory[at], &word, std::min(sizeof word, own - at));
  }
  for (std::size_t at = own; at < memory.size(); at += own) {
    std::memcpy(&memory[at], memory.data(), std::min(own, memory.size() - at));
  }
}

}  // namespace

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
