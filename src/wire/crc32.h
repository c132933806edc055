// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 as in Ethernet, in zlib's running form: start with 0, hand the result back in to go on.
//
// This is the portable one, eight bytes a step from tables. Whoever moves much data passes a faster
// one (ISA-L's crc32_gzip_refl is ten times as fast) wherever a Crc32Function is asked for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uroce::wire {

using Crc32Function = std::uint32_t (*)(std::uint32_t seed, const std::byte* data,
                                        std::size_t bytes);

[[nodiscard]] std::uint32_t crc32(std::uint32_t seed, const std::byte* data, std::size_t bytes);

}  // namespace uroce::wire
