// SPDX-License-Identifier: BSD-2-Clause
// Which of several receive queues takes a frame: by a Toeplitz hash over its addresses and ports,
// so that a flow stays with one queue (receive side scaling, as Microsoft's NDIS describes it).
#pragma once

#include <array>
#include <cstdint>

#include "steering/frame_key.h"

namespace uroce::steering {

// The bits of ibv_rx_hash_fields (asserted in verbs).
namespace hash_field {
inline constexpr std::uint32_t kSourceIpv4 = 1;
inline constexpr std::uint32_t kDestinationIpv4 = 2;
inline constexpr std::uint32_t kSourceIpv6 = 4;
inline constexpr std::uint32_t kDestinationIpv6 = 8;
inline constexpr std::uint32_t kSourcePortTcp = 16;
inline constexpr std::uint32_t kDestinationPortTcp = 32;
inline constexpr std::uint32_t kSourcePortUdp = 64;
inline constexpr std::uint32_t kDestinationPortUdp = 128;
inline constexpr std::uint32_t kAll = 255;
}  // namespace hash_field

// Of 36 bytes, the longest input: two IPv6 addresses, two ports.
inline constexpr std::size_t kHashInputBytesMax = 36;
using ToeplitzKey = std::array<std::uint8_t, kHashInputBytesMax + 4>;

// `input` is no longer than kHashInputBytesMax.
[[nodiscard]] std::uint32_t toeplitz(const ToeplitzKey& key, std::span<const std::uint8_t> input);

struct HashRule {
  ToeplitzKey key{};
  std::uint32_t fields = 0;
};

// Over those of the fields that the frame has: source address, destination address, source port,
// destination port. 0 where it has none.
[[nodiscard]] std::uint32_t hash_of(const HashRule& rule, const FrameKey& key);

}  // namespace uroce::steering
