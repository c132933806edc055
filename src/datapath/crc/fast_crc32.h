// SPDX-License-Identifier: BSD-2-Clause
// The CRC-32 of this machine, as wire/ wants it: ISA-L's, which folds with carry-less
// multiplication (38 GB/s on 1 KiB, against 6 for zlib), or wire's tables where the processor is
// emulated: QEMU's TCG does each multiplication in a loop, which makes 30 to 60 MB/s against 75 to
// 150.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/crc32.h"

namespace uroce::datapath {

// Any thread.
[[nodiscard]] wire::Crc32Function choose_crc32();

// At first what chooses, then what was chosen.
extern std::atomic<wire::Crc32Function> chosen_crc32;

inline std::uint32_t fast_crc32(std::uint32_t seed, const std::byte* data, std::size_t bytes) {
  return chosen_crc32.load(std::memory_order_relaxed)(seed, data, bytes);
}

}  // namespace uroce::datapath
