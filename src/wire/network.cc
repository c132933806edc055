// SPDX-License-Identifier: BSD-2-Clause
#include "wire/network.h"

#include <algorithm>

#include "base/check.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

namespace uroce::wire {
namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;
constexpr std::uint16_t kEtherTypeVlan = 0x8100;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kMoreFragmentsAndOffset = 0x3fff;
constexpr std::size_t kWordBytes = 4;

// The one's complement sum does not care how wide the words are that it is made of, nor for their
// byte order.
std::uint16_t fold(std::uint64_t sum) {
  sum = (sum & 0xffff'ffff) + (sum >> 32);
  sum = (sum & 0xffff'ffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

bool has_right_checksum(ConstBytes ip_header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < ip_header.size(); i += kWordBytes) {
    sum += load<Be32>(&ip_header[i]).get();
  }
  return fold(sum) == 0xffff;
}

NetworkDrop parse_ipv4(ConstBytes packet, NetworkView& view, ConstBytes& udp) {
  if (packet.size() < kIpv4HeaderBytes) return NetworkDrop::kTruncated;
  const auto ip = load<Ipv4Wire>(packet.data());
  const std::size_t header_bytes = (ip.version_and_words & 15) * kWordBytes;
  const std::size_t total_bytes = ip.total_bytes.get();
  if (ip.version_and_words >> 4 != 4 || header_bytes < kIpv4HeaderBytes ||
      header_bytes > total_bytes) {
    return NetworkDrop::kBadIpHeader;
  }
  if (total_bytes > packet.size()) return NetworkDrop::kTruncated;
  view.ip_header = packet.first(header_bytes);
  if (!has_right_checksum(view.ip_header)) return NetworkDrop::kBadIpHeader;
  if ((ip.fragment.get() & kMoreFragmentsAndOffset) != 0) return NetworkDrop::kFragment;
  if (ip.protocol != kProtocolUdp) return NetworkDrop::kNotRoce;
  view.source = gid_of_ipv4(ip.source.get());
  view.destination = gid_of_ipv4(ip.destination.get());
  view.traffic_class = ip.traffic_class;
  view.flow_label = 0;
  view.hop_limit = ip.hop_limit;
  udp = packet.subspan(header_bytes, total_bytes - header_bytes);
  return NetworkDrop::kNone;
}

// No extension headers: RoCE v2 has the UDP header right behind (a fragment header too is "another
// protocol" then).
NetworkDrop parse_ipv6(ConstBytes packet, NetworkView& view, ConstBytes& udp) {
  if (packet.size() < kIpv6HeaderBytes) return NetworkDrop::kTruncated;
  const auto ip = load<Ipv6Wire>(packet.data());
  const std::uint32_t word = ip.version_class_and_label.get();
  if (word >> 28 != 6) return NetworkDrop::kBadIpHeader;
  if (kIpv6HeaderBytes + ip.payload_bytes.get() > packet.size()) return NetworkDrop::kTruncated;
  if (ip.next_header != kProtocolUdp) return NetworkDrop::kNotRoce;
  view.ip_header = packet.first(kIpv6HeaderBytes);
  view.source = {ip.source};
  view.destination = {ip.destination};
  view.traffic_class = static_cast<std::uint8_t>(word >> 20);
  view.flow_label = word & 0xf'ffff;
  view.hop_limit = ip.hop_limit;
  udp = packet.subspan(kIpv6HeaderBytes, ip.payload_bytes.get());
  return NetworkDrop::kNone;
}

NetworkDrop parse_udp(ConstBytes datagram, NetworkView& view) {
  if (datagram.size() < kUdpHeaderBytes) return NetworkDrop::kBadUdpLength;
  const auto udp = load<UdpWire>(datagram.data());
  if (udp.destination_port.get() != kRoceUdpPort) return NetworkDrop::kNotRoce;
  const std::size_t bytes = udp.bytes.get();
  if (bytes < kUdpHeaderBytes || bytes > datagram.size()) return NetworkDrop::kBadUdpLength;
  view.udp_source_port = udp.source_port.get();
  view.udp_header = datagram.first(kUdpHeaderBytes);
  view.udp_payload = datagram.subspan(kUdpHeaderBytes, bytes - kUdpHeaderBytes);
  return NetworkDrop::kNone;
}

}  // namespace

std::byte* store_ipv4(std::byte* to, const Ipv4& ip) {
  constexpr std::uint32_t kVersionAndWords = 4 << 4 | kIpv4HeaderBytes / kWordBytes;
  const std::uint32_t lengths =
      kVersionAndWords << 24 | std::uint32_t{ip.traffic_class} << 16 | ip.total_bytes;
  const std::uint32_t fragment =
      std::uint32_t{ip.identification} << 16 | (ip.dont_fragment ? kDontFragment : 0u);
  const std::uint32_t protocol = std::uint32_t{ip.hop_limit} << 24 | std::uint32_t{kProtocolUdp}
                                                                         << 16;
  const std::uint16_t sum =
      fold(std::uint64_t{lengths} + fragment + protocol + ip.source + ip.destination);
  to = store(to, Be32(lengths));
  to = store(to, Be32(fragment));
  to = store(to, Be32(protocol | (sum ^ 0xffffu)));
  to = store(to, Be32(ip.source));
  return store(to, Be32(ip.destination));
}

Ipv4Wire to_wire(const Ipv4& ip) {
  std::array<std::byte, kIpv4HeaderBytes> bytes;
  store_ipv4(bytes.data(), ip);
  return load<Ipv4Wire>(bytes.data());
}

Ipv6Wire to_wire(const Ipv6& ip) {
  return {.version_class_and_label =
              Be32(std::uint32_t{6} << 28 | std::uint32_t{ip.traffic_class} << 20 |
                   (ip.flow_label & 0xf'ffff)),
          .payload_bytes = Be16(ip.payload_bytes),
          .next_header = kProtocolUdp,
          .hop_limit = ip.hop_limit,
          .source = ip.source.bytes,
          .destination = ip.destination.bytes};
}

UdpWire to_wire(const Udp& udp) {
  return {Be16(udp.source_port), Be16(udp.destination_port), Be16(udp.bytes), Be16(udp.checksum)};
}

std::uint32_t ipv4_of(const Gid& gid) {
  return load<Be32>(std::as_bytes(std::span(gid.bytes)).data() + 12).get();
}

Gid gid_of_ipv4(std::uint32_t address) {
  Gid gid;
  gid.bytes[10] = gid.bytes[11] = 0xff;
  store(std::as_writable_bytes(std::span(gid.bytes)).data() + 12, Be32(address));
  return gid;
}

std::size_t build_network(const Path& path, const LinkAddresses& link,
                          std::uint16_t udp_payload_bytes, std::uint16_t identification,
                          std::span<std::byte, kMaxNetworkHeaderBytes> out) {
  const bool is_ipv4 = path.destination.is_ipv4();
  const auto udp_bytes = static_cast<std::uint16_t>(kUdpHeaderBytes + udp_payload_bytes);
  std::byte* at = store(out.data(), EthernetWire{link.destination.bytes, link.source.bytes,
                                                 Be16(is_ipv4 ? kEtherTypeIpv4 : kEtherTypeIpv6)});
  if (is_ipv4) {
    at = store_ipv4(at, {.source = ipv4_of(path.source),
                         .destination = ipv4_of(path.destination),
                         .traffic_class = path.traffic_class,
                         .hop_limit = path.hop_limit,
                         .identification = identification,
                         .total_bytes = static_cast<std::uint16_t>(kIpv4HeaderBytes + udp_bytes)});
  } else {
    at = store(at, to_wire(Ipv6{.source = path.source,
                                .destination = path.destination,
                                .traffic_class = path.traffic_class,
                                .flow_label = path.flow_label,
                                .hop_limit = path.hop_limit,
                                .payload_bytes = udp_bytes}));
  }
  at = store(at, to_wire(Udp{.source_port = path.udp_source_port,
                             .destination_port = kRoceUdpPort,
                             .bytes = udp_bytes}));
  return static_cast<std::size_t>(at - out.data());
}

std::string_view name(NetworkDrop drop) {
  switch (drop) {
    case NetworkDrop::kNone:
      return "none";
    case NetworkDrop::kTruncated:
      return "truncated";
    case NetworkDrop::kNotIp:
      return "not IP";
    case NetworkDrop::kBadIpHeader:
      return "bad IP header";
    case NetworkDrop::kFragment:
      return "fragment";
    case NetworkDrop::kNotRoce:
      return "not RoCE";
    case NetworkDrop::kBadUdpLength:
      return "bad UDP length";
  }
  return "?";
}

NetworkDrop parse_network(ConstBytes frame, NetworkView& view) {
  if (frame.size() < kEthernetHeaderBytes) return NetworkDrop::kTruncated;
  const auto ethernet = load<EthernetWire>(frame.data());
  view.link = {.source = {ethernet.source}, .destination = {ethernet.destination}};
  std::uint16_t ether_type = ethernet.ether_type.get();
  ConstBytes packet = frame.subspan(kEthernetHeaderBytes);
  if (ether_type == kEtherTypeVlan) {
    if (packet.size() < kVlanTagBytes) return NetworkDrop::kTruncated;
    ether_type = load<Be16>(&packet[2]).get();
    packet = packet.subspan(kVlanTagBytes);
  }
  ConstBytes datagram;
  NetworkDrop drop = NetworkDrop::kNotIp;
  if (ether_type == kEtherTypeIpv4) drop = parse_ipv4(packet, view, datagram);
  if (ether_type == kEtherTypeIpv6) drop = parse_ipv6(packet, view, datagram);
  return drop == NetworkDrop::kNone ? parse_udp(datagram, view) : drop;
}

}  // namespace uroce::wire
