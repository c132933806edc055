// SPDX-License-Identifier: BSD-2-Clause
#include "sim/fill.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order.h"

namespace uroce::sim {
namespace {

// So many random bytes, over and over. Nothing that is misplaced is so by a multiple of a prime.
inline constexpr std::size_t kWordsOfPattern = 4093;

}  // namespace

void fill(Bytes memory, Prng prng) {
  const std::size_t own = std::min(memory.size(), kWordsOfPattern * sizeof(std::uint64_t));
  std::size_t at = 0;
  for (std::uint64_t word; at + sizeof word <= own; at += sizeof word) {
    word = to_big(prng.next());
    std::memcpy(&memory[at], &word, sizeof word);
  }
  if (const std::uint64_t last = to_big(prng.next()); at != own) {
    std::memcpy(&memory[at], &last, own - at);
  }
  for (at = own; at < memory.size(); at += own) {
    std::memcpy(&memory[at], memory.data(), std::min(own, memory.size() - at));
  }
}

}  // namespace uroce::sim
