// SPDX-License-Identifier: BSD-2-Clause
#include "steering/frame_key.h"

#include <algorithm>

#include "wire/bytes.h"
#include "wire/network.h"

namespace uroce::steering {
namespace {

constexpr std::uint16_t kTypeIpv4 = 0x0800;
constexpr std::uint16_t kTypeIpv6 = 0x86dd;
constexpr std::uint16_t kTypeVlan = 0x8100;
constexpr std::uint16_t kTypeServiceVlan = 0x88a8;
constexpr int kVlanTagsMax = 2;
constexpr std::uint8_t kProtocolTcp = 6;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint16_t kFragmentOffset = 0x1fff;

struct VlanWire {
  Be16 tag;
  Be16 ether_type;
};
static_assert(sizeof(VlanWire) == wire::kVlanTagBytes);

// TCP and UDP begin alike.
struct PortsWire {
  Be16 source;
  Be16 destination;
};

ConstBytes take_vlan_tags(ConstBytes behind, FrameKey& key) {
  for (int i = 0; i < kVlanTagsMax; ++i) {
    const std::uint16_t type = key.ether_type.get();
    const bool is_tag = type == kTypeVlan || type == kTypeServiceVlan;
    if (!is_tag || behind.size() < sizeof(VlanWire)) break;
    const auto vlan = wire::load<VlanWire>(behind.data());
    if (!key.has(layer::kVlan)) key.vlan_tag = vlan.tag;
    key.layers |= layer::kVlan;
    key.ether_type = vlan.ether_type;
    behind = behind.subspan(sizeof(VlanWire));
  }
  return behind;
}

void take_ports(ConstBytes segment, FrameKey& key) {
  const bool is_tcp = key.protocol == kProtocolTcp;
  if ((!is_tcp && key.protocol != kProtocolUdp) || segment.size() < sizeof(PortsWire)) return;
  const auto ports = wire::load<PortsWire>(segment.data());
  key.source_port = ports.source;
  key.destination_port = ports.destination;
  key.layers |= is_tcp ? layer::kTcp : layer::kUdp;
}

void take_ipv4(ConstBytes packet, FrameKey& key) {
  if (packet.size() < wire::kIpv4HeaderBytes) return;
  const auto ip = wire::load<wire::Ipv4Wire>(packet.data());
  const std::size_t header_bytes = std::size_t{ip.version_and_words & 15U} * 4;
  if (ip.version_and_words >> 4 != 4 || header_bytes < wire::kIpv4HeaderBytes) return;
  key.layers |= layer::kIpv4;
  wire::store(std::as_writable_bytes(std::span(key.source)).data(), ip.source);
  wire::store(std::as_writable_bytes(std::span(key.destination)).data(), ip.destination);
  key.protocol = ip.protocol;
  key.traffic_class = ip.traffic_class;
  key.hop_limit = ip.hop_limit;
  // On the wire the two stand above the offset, in the other order.
  const std::uint16_t fragment = ip.fragment.get();
  if ((fragment & 0x4000) != 0) key.ipv4_flags |= kDontFragment;
  if ((fragment & 0x2000) != 0) key.ipv4_flags |= kMoreFragments;
  if ((fragment & kFragmentOffset) != 0 || header_bytes > packet.size()) return;
  take_ports(packet.subspan(header_bytes), key);
}

void take_ipv6(ConstBytes packet, FrameKey& key) {
  if (packet.size() < wire::kIpv6HeaderBytes) return;
  const auto ip = wire::load<wire::Ipv6Wire>(packet.data());
  const std::uint32_t word = ip.version_class_and_label.get();
  if (word >> 28 != 6) return;
  key.layers |= layer::kIpv6;
  key.source = ip.source;
  key.destination = ip.destination;
  key.protocol = ip.next_header;
  key.traffic_class = static_cast<std::uint8_t>(word >> 20);
  key.hop_limit = ip.hop_limit;
  key.flow_label.set(word & 0xf'ffff);
  take_ports(packet.subspan(wire::kIpv6HeaderBytes), key);
}

}  // namespace

FrameKey classify(ConstBytes frame) {
  FrameKey key;
  if (frame.size() < wire::kEthernetHeaderBytes) return key;
  const auto ethernet = wire::load<wire::EthernetWire>(frame.data());
  key.destination_mac = ethernet.destination;
  key.source_mac = ethernet.source;
  key.ether_type = ethernet.ether_type;
  const ConstBytes packet = take_vlan_tags(frame.subspan(wire::kEthernetHeaderBytes), key);
  if (key.ether_type.get() == kTypeIpv4) take_ipv4(packet, key);
  if (key.ether_type.get() == kTypeIpv6) take_ipv6(packet, key);
  return key;
}

}  // namespace uroce::steering
