// SPDX-License-Identifier: BSD-2-Clause
#include "wire/identification.h"

#include <array>

#include "base/byte_order.h"
#include "wire/crc_algebra.h"
#include "wire/network.h"

namespace uroce::wire {
namespace {

// Identification and flags are one word, with so many bytes between it and the BTH.
constexpr std::size_t kBytesToBth = kIpv4HeaderBytes - 8 + kUdpHeaderBytes;
constexpr std::uint32_t kDontFragment = 0x4000;

// x^(-8 * n) is fine[n % 64] * coarse[n / 64]: enough for any datagram that IPv4 can carry.
constexpr std::size_t kFineSteps = 64;
constexpr std::size_t kCoarseSteps = 65'536 / kFineSteps + 1;

constexpr std::uint32_t remove_zero_byte(std::uint32_t a) {
  for (int bit = 0; bit < 8; ++bit) a = divided_by_x(a);
  return a;
}

constexpr auto kFine = [] {
  std::array<std::uint32_t, kFineSteps> powers{};
  std::uint32_t power = kCrcOne;
  for (auto& entry : powers) {
    entry = power;
    power = remove_zero_byte(power);
  }
  return powers;
}();

constexpr auto kCoarse = [] {
  const std::uint32_t step = remove_zero_byte(kFine[kFineSteps - 1]);
  std::array<std::uint32_t, kCoarseSteps> powers{};
  std::uint32_t power = kCrcOne;
  for (auto& entry : powers) {
    entry = power;
    power = multiply(power, step);
  }
  return powers;
}();

std::uint32_t remove_zero_bytes(std::uint32_t a, std::size_t bytes) {
  return multiply(multiply(a, kFine[bytes % kFineSteps]), kCoarse[bytes / kFineSteps]);
}

}  // namespace

IdentificationFit icrc_fit_identification(std::uint32_t received, std::uint32_t computed,
                                          std::size_t covered_bytes) {
  const std::size_t bytes = 4 + kBytesToBth + covered_bytes;  // back before the word itself
  if (bytes / kFineSteps >= kCoarseSteps) return {};
  // The register then holds the word's difference, its first byte lowest.
  const std::uint32_t word = swap_bytes(remove_zero_bytes(received ^ computed, bytes));
  const std::uint32_t flags = word & 0xffff;
  return {.fits = flags == 0 || flags == kDontFragment,
          .dont_fragment = flags == 0,
          .identification = static_cast<std::uint16_t>(word >> 16)};
}

}  // namespace uroce::wire
