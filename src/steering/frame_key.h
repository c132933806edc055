// SPDX-License-Identifier: BSD-2-Clause
// What rules look at in an Ethernet frame, each field at a fixed place, so that a rule is a masked
// comparison of one cache line whatever it names. Fields of a layer that a frame has not are 0, and
// `layers` says which it has.
//
//   const FrameKey key = classify(frame);
//   if (pattern.matches(key)) ...
//
// A frame is anything: what is cut off, or contradicts itself, has the layers before that and no
// more. Ports are those of TCP or UDP right behind the IP header, in a first fragment at most.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/byte_order.h"
#include "uroce/packet.h"

namespace uroce::steering {

namespace layer {
inline constexpr std::uint8_t kVlan = 1;
inline constexpr std::uint8_t kIpv4 = 2;
inline constexpr std::uint8_t kIpv6 = 4;
inline constexpr std::uint8_t kTcp = 8;
inline constexpr std::uint8_t kUdp = 16;
}  // namespace layer

// The bits of FrameKey::ipv4_flags.
inline constexpr std::uint8_t kDontFragment = 2;
inline constexpr std::uint8_t kMoreFragments = 4;

struct FrameKey {
  std::array<std::uint8_t, 6> destination_mac{};
  Be16 ether_type;  // behind the last VLAN tag
  std::array<std::uint8_t, 6> source_mac{};
  Be16 vlan_tag;                          // the first one: priority, DEI, VLAN ID
  std::array<std::uint8_t, 16> source{};  // an IPv4 address is the first four bytes
  std::array<std::uint8_t, 16> destination{};
  std::uint8_t protocol = 0;       // or IPv6's next header
  std::uint8_t traffic_class = 0;  // or TOS
  std::uint8_t hop_limit = 0;      // or time to live
  std::uint8_t ipv4_flags = 0;
  Be32 flow_label;
  Be16 source_port;
  Be16 destination_port;
  std::uint8_t layers = 0;
  std::array<std::uint8_t, 3> unused{};

  [[nodiscard]] bool has(std::uint8_t one_of) const { return (layers & one_of) != 0; }
  // To a group; broadcast is one.
  [[nodiscard]] bool is_multicast() const { return (destination_mac[0] & 1) != 0; }
};

using KeyWords = std::array<std::uint64_t, 8>;
static_assert(sizeof(FrameKey) == sizeof(KeyWords));

[[nodiscard]] FrameKey classify(ConstBytes frame);

// Those bits of the value count that are set in the mask.
struct Pattern {
  FrameKey value;
  FrameKey mask;

  [[nodiscard]] bool matches(const FrameKey& key) const {
    const auto k = std::bit_cast<KeyWords>(key);
    const auto v = std::bit_cast<KeyWords>(value);
    const auto m = std::bit_cast<KeyWords>(mask);
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i < k.size(); ++i) difference |= (k[i] ^ v[i]) & m[i];
    return difference == 0;
  }
};

}  // namespace uroce::steering
