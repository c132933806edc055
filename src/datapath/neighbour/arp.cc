// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/arp.h"

#include "datapath/neighbour/address.h"

namespace uroce::datapath {
namespace {

constexpr std::uint16_t kHardwareEthernet = 1;
constexpr std::uint16_t kRequest = 1;
constexpr std::uint16_t kReply = 2;

struct ArpWire {
  Be16 hardware;
  Be16 protocol;
  std::uint8_t hardware_bytes;
  std::uint8_t protocol_bytes;
  Be16 operation;
  MacAddress sender_mac;
  std::array<std::uint8_t, 4> sender;
  MacAddress target_mac;
  std::array<std::uint8_t, 4> target;
};
static_assert(sizeof(EthernetWire) + sizeof(ArpWire) == kArpFrameBytes && alignof(ArpWire) == 1);

std::size_t build(Bytes frame, const MacAddress& to, std::uint16_t operation,
                  const MacAddress& own_mac, const Gid& own, const MacAddress& target_mac,
                  const Gid& target) {
  write_wire(frame, 0, make_ethernet(to, own_mac, kTypeArp));
  write_wire(frame, sizeof(EthernetWire),
             ArpWire{Be16(kHardwareEthernet), Be16(kTypeIpv4), 6, 4, Be16(operation), own_mac,
                     ipv4_of(own), target_mac, ipv4_of(target)});
  return kArpFrameBytes;
}

}  // namespace

std::optional<ArpMessage> parse_arp(ConstBytes frame) {
  if (frame.size() < kArpFrameBytes) return std::nullopt;
  const auto arp = read_wire<ArpWire>(frame, sizeof(EthernetWire));
  const std::uint16_t operation = arp.operation.get();
  if (arp.hardware.get() != kHardwareEthernet || arp.protocol.get() != kTypeIpv4 ||
      arp.hardware_bytes != 6 || arp.protocol_bytes != 4 ||
      (operation != kRequest && operation != kReply)) {
    return std::nullopt;
  }
  return ArpMessage{operation == kRequest, arp.sender_mac, ipv4_mapped(arp.sender),
                    ipv4_mapped(arp.target)};
}

std::size_t build_arp_request(Bytes frame, const MacAddress& own_mac, const Gid& own,
                              const Gid& target, const MacAddress& ask) {
  return build(frame, ask, kRequest, own_mac, own, MacAddress{}, target);
}

std::size_t build_arp_reply(Bytes frame, const MacAddress& own_mac, const ArpMessage& request) {
  return build(frame, request.sender_mac, kReply, own_mac, request.target, request.sender_mac,
               request.sender);
}

}  // namespace uroce::datapath
