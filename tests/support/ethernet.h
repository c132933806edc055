// SPDX-License-Identifier: BSD-2-Clause
// Ethernet frames with whatever in them, for what takes frames as they come.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "uroce/packet.h"

namespace uroce::test {

using Mac = std::array<std::uint8_t, 6>;
using Ipv4Address = std::array<std::uint8_t, 4>;
using Ipv6Address = std::array<std::uint8_t, 16>;

inline constexpr Mac kMacA{0x02, 0, 0, 0, 0, 0x0a};
inline constexpr Mac kMacB{0x02, 0, 0, 0, 0, 0x0b};
inline constexpr Mac kGroupMac{0x01, 0, 0x5e, 1, 2, 3};
inline constexpr std::uint8_t kTcp = 6;
inline constexpr std::uint8_t kUdp = 17;

// Header by header; each says what the one before it needs to know.
class FrameBuilder {
 public:
  FrameBuilder(const Mac& destination, const Mac& source) {
    add(destination);
    add(source);
  }

  FrameBuilder& vlan(std::uint16_t tag, std::uint16_t type = 0x8100) {
    return word16(type).word16(tag);
  }
  // Without an IP header.
  FrameBuilder& type(std::uint16_t type) { return word16(type); }
  FrameBuilder& ipv4(const Ipv4Address& source, const Ipv4Address& destination,
                     std::uint8_t protocol, std::uint16_t fragment = 0x4000) {
    word16(0x0800);
    add(std::array<std::uint8_t, 6>{0x45, 0x1c, 0, 40, 0, 1});
    word16(fragment);
    add(std::array<std::uint8_t, 4>{63, protocol, 0, 0});
    add(source);
    return add(destination);
  }
  FrameBuilder& ipv6(const Ipv6Address& source, const Ipv6Address& destination,
                     std::uint8_t protocol) {
    word16(0x86dd);
    add(std::array<std::uint8_t, 8>{0x61, 0xc1, 0x23, 0x45, 0, 20, protocol, 62});
    add(source);
    return add(destination);
  }
  FrameBuilder& ports(std::uint16_t source, std::uint16_t destination) {
    return word16(source).word16(destination).word16(8).word16(0);
  }
  // Up to so many bytes in all, each telling its place.
  FrameBuilder& fill(std::size_t bytes) {
    while (bytes_.size() < bytes) bytes_.push_back(static_cast<std::byte>(bytes_.size()));
    return *this;
  }

  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  template <std::size_t kBytes>
  FrameBuilder& add(const std::array<std::uint8_t, kBytes>& bytes) {
    std::ranges::copy(std::as_bytes(std::span(bytes)), std::back_inserter(bytes_));
    return *this;
  }
  FrameBuilder& word16(std::uint16_t word) {
    return add(std::array{static_cast<std::uint8_t>(word >> 8), static_cast<std::uint8_t>(word)});
  }

  std::vector<std::byte> bytes_;
};

}  // namespace uroce::test
