// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/nd.h"

#include "datapath/neighbour/address.h"
#include "datapath/neighbour/internet_checksum.h"

namespace uroce::datapath {
namespace {

constexpr std::uint8_t kSolicitation = 135;
constexpr std::uint8_t kAdvertisement = 136;
constexpr std::uint8_t kSourceOption = 1;
constexpr std::uint8_t kTargetOption = 2;
constexpr std::uint8_t kHopLimit = 255;
constexpr std::uint32_t kSolicited = 0x4000'0000;
constexpr std::uint32_t kOverride = 0x2000'0000;
constexpr Gid kAllNodes{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

struct NdWire {
  std::uint8_t type;
  std::uint8_t code;
  Be16 checksum;
  Be32 flags;
  Gid target;
};
struct MacOptionWire {
  std::uint8_t type;
  std::uint8_t length;  // in units of 8 bytes
  MacAddress mac;
};
constexpr std::size_t kIpv6At = sizeof(EthernetWire);
constexpr std::size_t kNdAt = kIpv6At + sizeof(wire::Ipv6Wire);
constexpr std::size_t kOptionsAt = kNdAt + sizeof(NdWire);
static_assert(kOptionsAt + sizeof(MacOptionWire) == kNdFrameBytes && alignof(NdWire) == 1);

// The link-layer address option of `type`; others are skipped. Each has a length of at least one,
// so the walk ends (a zero length voids the packet: RFC 4861, 4.6).
std::optional<MacAddress> find_mac_option(ConstBytes options, std::uint8_t type) {
  while (options.size() >= sizeof(MacOptionWire)) {
    const auto option = read_wire<MacOptionWire>(options);
    const std::size_t bytes = std::size_t{option.length} * 8;
    if (bytes == 0 || bytes > options.size()) return std::nullopt;
    if (option.type == type) return option.mac;
    options = options.subspan(bytes);
  }
  return std::nullopt;
}

struct Addressing {
  MacAddress from_mac, to_mac;
  Gid from, to;
};

std::size_t build(Bytes frame, const Addressing& way, NdWire message, MacOptionWire option) {
  const std::uint16_t bytes = sizeof(NdWire) + sizeof(MacOptionWire);
  write_wire(frame, 0, make_ethernet(way.to_mac, way.from_mac, kTypeIpv6));
  wire::Ipv6Wire ip = wire::to_wire(wire::Ipv6{
      .source = way.from, .destination = way.to, .hop_limit = kHopLimit, .payload_bytes = bytes});
  ip.next_header = kProtocolIcmpv6;
  write_wire(frame, kIpv6At, ip);
  write_wire(frame, kNdAt, message);
  write_wire(frame, kOptionsAt, option);
  message.checksum.set(icmpv6_checksum(way.from, way.to, frame.subspan(kNdAt, bytes)));
  write_wire(frame, kNdAt, message);
  return kNdFrameBytes;
}

}  // namespace

std::optional<NdMessage> parse_nd(ConstBytes frame) {
  if (frame.size() < kOptionsAt) return std::nullopt;
  const auto ip = read_wire<wire::Ipv6Wire>(frame, kIpv6At);
  const auto message = read_wire<NdWire>(frame, kNdAt);
  const std::size_t bytes = ip.payload_bytes.get();
  if (ip.next_header != kProtocolIcmpv6 || ip.hop_limit != kHopLimit || bytes < sizeof(NdWire) ||
      bytes > frame.size() - kNdAt || message.code != 0 ||
      (message.type != kSolicitation && message.type != kAdvertisement)) {
    return std::nullopt;
  }
  // Over a message that holds its own checksum, the sum comes out as zero.
  if (icmpv6_checksum({ip.source}, {ip.destination}, frame.subspan(kNdAt, bytes)) != 0) {
    return std::nullopt;
  }
  const bool asks = message.type == kSolicitation;
  const ConstBytes options = frame.subspan(kOptionsAt, bytes - sizeof(NdWire));
  return NdMessage{asks,
                   !asks && (message.flags.get() & kSolicited) != 0,
                   {ip.source},
                   message.target,
                   {read_wire<EthernetWire>(frame).source},
                   find_mac_option(options, asks ? kSourceOption : kTargetOption)};
}

std::size_t build_solicitation(Bytes frame, const MacAddress& own_mac, const Gid& own,
                               const Gid& target, const MacAddress* last_known) {
  const Gid group = solicited_node_of(target);
  const Addressing way = last_known != nullptr
                             ? Addressing{own_mac, *last_known, own, target}
                             : Addressing{own_mac, multicast_mac_of(group), own, group};
  return build(frame, way, NdWire{kSolicitation, 0, Be16(0), Be32(0), target},
               MacOptionWire{kSourceOption, 1, own_mac});
}

std::size_t build_advertisement(Bytes frame, const MacAddress& own_mac,
                                const NdMessage& solicitation) {
  // RFC 4861, 7.2.4: a probe from nowhere is answered to all nodes, and not as "solicited".
  const bool to_all = is_unspecified(solicitation.sender);
  const Addressing way =
      to_all ? Addressing{own_mac, multicast_mac_of(kAllNodes), solicitation.target, kAllNodes}
             : Addressing{own_mac, solicitation.told_mac.value_or(solicitation.sender_mac),
                          solicitation.target, solicitation.sender};
  const std::uint32_t flags = to_all ? kOverride : kSolicited | kOverride;
  return build(frame, way, NdWire{kAdvertisement, 0, Be16(0), Be32(flags), solicitation.target},
               MacOptionWire{kTargetOption, 1, own_mac});
}

}  // namespace uroce::datapath
