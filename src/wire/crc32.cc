// SPDX-License-Identifier: BSD-2-Clause
#include "wire/crc32.h"

#include <array>

#include "base/byte_order.h"
#include "wire/bytes.h"
#include "wire/crc_algebra.h"

namespace uroce::wire {
namespace {

// kTables[n][b]: the register after byte b and n zero bytes.
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (auto& table : tables) table[byte] = value = append_zero_byte(value);
  }
  return tables;
}();
static_assert(kTables[0][1] == 0x7707'3096 && kTables[0][255] == 0x2d02'ef8d);

std::uint32_t little_endian_word(const std::byte* at) { return swap_bytes(load<Be32>(at).get()); }

std::uint32_t fold_word(std::uint32_t word, std::size_t zero_bytes_after) {
  return kTables[zero_bytes_after + 3][word & 0xff] ^
         kTables[zero_bytes_after + 2][word >> 8 & 0xff] ^
         kTables[zero_bytes_after + 1][word >> 16 & 0xff] ^ kTables[zero_bytes_after][word >> 24];
}

}  // namespace

std::uint32_t crc32(std::uint32_t seed, const std::byte* data, std::size_t bytes) {
  std::uint32_t state = ~seed;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    state =
        fold_word(state ^ little_endian_word(data), 4) ^ fold_word(little_endian_word(data + 4), 0);
  }
  for (; bytes != 0; ++data, --bytes) {
    state = kTables[0][(state ^ static_cast<std::uint32_t>(*data)) & 0xff] ^ state >> 8;
  }
  return ~state;
}

}  // namespace uroce::wire
