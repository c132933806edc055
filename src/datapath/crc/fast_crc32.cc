// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/crc/fast_crc32.h"

#include <isa-l/crc.h>

#include <array>
#include <cstring>
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace uroce::datapath {
namespace {

std::uint32_t isal_crc32(std::uint32_t seed, const std::byte* data, std::size_t bytes) {
  return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(data), bytes);
}

// Whether it is QEMU's TCG that carries our instructions out, by its name in the hypervisors' leaf.
bool is_emulated() {
#if defined(__x86_64__)
  constexpr unsigned kFeatures = 1, kIsVirtual = 1U << 31, kHypervisor = 0x4000'0000;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(kFeatures, &a, &b, &c, &d) == 0 || (c & kIsVirtual) == 0) return false;
  std::array<unsigned, 3> words{};
  __cpuid(kHypervisor, a, words[0], words[1], words[2]);
  std::array<char, sizeof words> name{};
  std::memcpy(name.data(), words.data(), sizeof words);
  return std::string_view(name.data(), name.size()) == "TCGTCGTCGTCG";
#else
  return false;
#endif
}

std::uint32_t choose_first(std::uint32_t seed, const std::byte* data, std::size_t bytes) {
  const wire::Crc32Function chosen = choose_crc32();
  chosen_crc32.store(chosen, std::memory_order_relaxed);
  return chosen(seed, data, bytes);
}

}  // namespace

constinit std::atomic<wire::Crc32Function> chosen_crc32 = choose_first;

wire::Crc32Function choose_crc32() { return is_emulated() ? wire::crc32 : isal_crc32; }

}  // namespace uroce::datapath
