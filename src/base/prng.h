// SPDX-License-Identifier: BSD-2-Clause
// Pseudo-random numbers that are the same on every machine: for faults, workloads and options that
// a seed describes. Not for keys (engine/key_source.h).
//
// Each purpose gets its own generator by `split`, so that one more draw for one purpose does not
// shift what another draws:
//
//   Prng seed(7);
//   Prng loss = seed.split(1), delay = seed.split(2);
//   if (loss.chance(kMillion / 100)) ...               // one in a hundred
//
// The generator is SplitMix64 (Steele, Lea, Flood 2014): a counter and a mixing function.
#pragma once

#include <cstdint>

namespace uroce {

class Prng {
 public:
  static constexpr std::uint32_t kMillion = 1'000'000;

  constexpr explicit Prng(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9e37'79b9'7f4a'7c15;
    return mix(state_);
  }

  // Evenly one of [0, bound), by the high half of a product; `bound` is not 0. Off by 2^-32 of
  // itself at most.
  constexpr std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

  // Evenly one of [low, high].
  constexpr std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t width = high - low + 1;
    return width == 0 ? static_cast<std::uint32_t>(next() >> 32) : low + below(width);
  }

  // True so many times in a million.
  constexpr bool chance(std::uint32_t per_million) { return below(kMillion) < per_million; }

  // A generator of its own for `purpose`; this one does not move.
  [[nodiscard]] constexpr Prng split(std::uint64_t purpose) const {
    return Prng(mix(state_ ^ mix(purpose + 0x632b'e59b'd9b4'e019)));
  }

 private:
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace uroce
