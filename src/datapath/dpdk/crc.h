// SPDX-License-Identifier: BSD-2-Clause
// The CRC-32 of the machine: ISA-L's, which folds with carry-less multiplication where there is one
// (measured: 38 GB/s on 1 KiB, against 6 for zlib). DPDK's own needs an initialised EAL to be fast.
#pragma once

#include <isa-l/crc.h>

#include <cstddef>
#include <cstdint>

namespace uroce::datapath {

inline std::uint32_t crc32_fast(std::uint32_t seed, const std::byte* data, std::size_t bytes) {
  return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(data), bytes);
}

}  // namespace uroce::datapath
