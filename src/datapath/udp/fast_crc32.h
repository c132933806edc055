// SPDX-License-Identifier: BSD-2-Clause
// ISA-L's CRC-32 as wire/ wants it; the reflected polynomial of Ethernet and zlib.
#pragma once

#include <isa-l/crc.h>

#include <cstddef>
#include <cstdint>

namespace uroce::datapath::udp {

inline std::uint32_t fast_crc32(std::uint32_t seed, const std::byte* data, std::size_t bytes) {
  return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(data), bytes);
}

}  // namespace uroce::datapath::udp
