// SPDX-License-Identifier: BSD-2-Clause
#include "wire/identification.h"

#include <array>

#include "base/byte_order.h"
#include "uroce/packet.h"
#include "wire/crc_algebra.h"
#include "wire/network.h"

namespace uroce::wire {
namespace {

// Identification and flags are one word, with so many bytes between it and the BTH.
constexpr std::size_t kBytesToBth = kIpv4HeaderBytes - 8 + kUdpHeaderBytes;
constexpr std::uint32_t kDontFragment = 0x4000;
constexpr std::size_t kWordBytes = 4;

// The longest packet, from the BTH on: headers and the largest path MTU.
constexpr std::size_t kMaxCoveredBytes = kMaxHeaderBytes + 4096;

// kInverse[n] is x^(-32 n): it takes n words of zeros off. A packet is a whole number of words.
constexpr auto kInverse = [] {
  std::array<std::uint32_t, (kWordBytes + kBytesToBth + kMaxCoveredBytes) / kWordBytes + 1>
      powers{};
  std::uint32_t power = kCrcOne;
  for (auto& entry : powers) {
    entry = power;
    for (int bit = 0; bit < 32; ++bit) power = divided_by_x(power);
  }
  return powers;
}();

}  // namespace

IdentificationFit icrc_fit_identification(std::uint32_t received, std::uint32_t computed,
                                          std::size_t covered_bytes) {
  if (covered_bytes % kWordBytes != 0 || covered_bytes > kMaxCoveredBytes) return {};
  const std::size_t words = (kWordBytes + kBytesToBth + covered_bytes) / kWordBytes;
  // Back before the word itself: the register then holds its difference, first byte lowest.
  const std::uint32_t word = swap_bytes(multiply(received ^ computed, kInverse[words]));
  const std::uint32_t flags = word & 0xffff;
  return {.fits = flags == 0 || flags == kDontFragment,
          .dont_fragment = flags == 0,
          .identification = static_cast<std::uint16_t>(word >> 16)};
}

}  // namespace uroce::wire
