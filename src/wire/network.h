// SPDX-License-Identifier: BSD-2-Clause
// Ethernet, IP and UDP round a RoCE v2 packet, for datapaths that own the whole frame.
//
//   NetworkHeaders headers;
//   std::size_t n = build_network(path, link, udp_payload_bytes, identification, headers);
//
//   NetworkView view;
//   if (NetworkDrop drop = parse_network(frame, view); drop != NetworkDrop::kNone) return drop;
//
// The UDP checksum is sent as 0, for IPv6 too: RFC 6935 allows it for what carries a check of its
// own, RoCE v2 has the ICRC, and NICs and Linux rxe send 0 and expect no other. A received checksum
// is not looked at, since the ICRC says more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/byte_order.h"
#include "uroce/ids.h"
#include "uroce/packet.h"

namespace uroce::wire {

inline constexpr std::size_t kEthernetHeaderBytes = 14;
inline constexpr std::size_t kVlanTagBytes = 4;
inline constexpr std::size_t kIpv4HeaderBytes = 20;
inline constexpr std::size_t kIpv6HeaderBytes = 40;
inline constexpr std::size_t kUdpHeaderBytes = 8;
inline constexpr std::size_t kMaxNetworkHeaderBytes =
    kEthernetHeaderBytes + kVlanTagBytes + kIpv6HeaderBytes + kUdpHeaderBytes;

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  friend constexpr bool operator==(const MacAddress&, const MacAddress&) = default;
};

struct EthernetWire {
  std::array<std::uint8_t, 6> destination;
  std::array<std::uint8_t, 6> source;
  Be16 ether_type;
};
static_assert(sizeof(EthernetWire) == kEthernetHeaderBytes && alignof(EthernetWire) == 1);

struct Ipv4 {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint16_t identification = 0;
  bool dont_fragment = true;
  std::uint16_t total_bytes = 0;  // header and all
};

struct Ipv4Wire {
  std::uint8_t version_and_words;
  std::uint8_t traffic_class;
  Be16 total_bytes;
  Be16 identification;
  Be16 fragment;  // reserved, DF, MF, offset
  std::uint8_t hop_limit;
  std::uint8_t protocol;
  Be16 checksum;
  Be32 source;
  Be32 destination;
};
static_assert(sizeof(Ipv4Wire) == kIpv4HeaderBytes && alignof(Ipv4Wire) == 1);

struct Ipv6 {
  Gid source{};
  Gid destination{};
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
  std::uint8_t hop_limit = 64;
  std::uint16_t payload_bytes = 0;  // UDP header and all
};

struct Ipv6Wire {
  Be32 version_class_and_label;
  Be16 payload_bytes;
  std::uint8_t next_header;
  std::uint8_t hop_limit;
  std::array<std::uint8_t, 16> source;
  std::array<std::uint8_t, 16> destination;
};
static_assert(sizeof(Ipv6Wire) == kIpv6HeaderBytes && alignof(Ipv6Wire) == 1);

struct Udp {
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint16_t bytes = 0;  // header and all
  std::uint16_t checksum = 0;
};

struct UdpWire {
  Be16 source_port;
  Be16 destination_port;
  Be16 bytes;
  Be16 checksum;
};
static_assert(sizeof(UdpWire) == kUdpHeaderBytes && alignof(UdpWire) == 1);

// Writes the header with its checksum, and returns where the next one goes. (Word by word, as the
// BTH and for its reason.)
std::byte* store_ipv4(std::byte* to, const Ipv4& ip);
[[nodiscard]] Ipv4Wire to_wire(const Ipv4& ip);
[[nodiscard]] Ipv6Wire to_wire(const Ipv6& ip);
[[nodiscard]] UdpWire to_wire(const Udp& udp);

// ::ffff:a.b.c.d and a.b.c.d.
[[nodiscard]] std::uint32_t ipv4_of(const Gid& gid);
[[nodiscard]] Gid gid_of_ipv4(std::uint32_t address);

// Who on this link sends the frame, and who takes it.
struct LinkAddresses {
  MacAddress source{};
  MacAddress destination{};
};

// Ethernet, IP (the family is that of path.destination) and UDP headers of a packet with so many
// bytes from the BTH to the ICRC; returns how many bytes they are. `identification` is for IPv4.
std::size_t build_network(const Path& path, const LinkAddresses& link,
                          std::uint16_t udp_payload_bytes, std::uint16_t identification,
                          std::span<std::byte, kMaxNetworkHeaderBytes> out);

enum class NetworkDrop : std::uint8_t {
  kNone,
  kTruncated,     // shorter than its headers say
  kNotIp,         // ARP and the like: for somebody else
  kBadIpHeader,   // version, header length or checksum wrong
  kFragment,      // RoCE packets are never fragmented
  kNotRoce,       // not UDP, or another port
  kBadUdpLength,  // less than its own header, or more than the IP packet holds
};
inline constexpr std::size_t kNetworkDropCount = 7;

[[nodiscard]] std::string_view name(NetworkDrop drop);

struct NetworkView {
  LinkAddresses link{};
  Gid source{};
  Gid destination{};
  std::uint32_t flow_label = 0;
  std::uint16_t udp_source_port = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  ConstBytes ip_header{};  // for icrc_start
  ConstBytes udp_header{};
  ConstBytes udp_payload{};  // BTH to ICRC, both included
};

// `frame` starts with the Ethernet header; one VLAN tag is skipped; what stands behind the IP
// packet (Ethernet's padding of short frames) is ignored.
[[nodiscard]] NetworkDrop parse_network(ConstBytes frame, NetworkView& view);

}  // namespace uroce::wire
