// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/echo.h"

#include <algorithm>

#include "datapath/neighbour/address.h"
#include "datapath/neighbour/internet_checksum.h"

namespace uroce::datapath {
namespace {

struct EchoWire {
  std::uint8_t type;
  std::uint8_t code;
  Be16 checksum;
};
constexpr std::size_t kIpAt = sizeof(EthernetWire);
constexpr std::uint8_t kTimeToLive = 64;
constexpr std::uint8_t kPlainHeader = 0x45;  // version 4, five words: no options
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kFragmentBits = 0x3fff;

void swap_ethernet(Bytes reply) {
  auto ethernet = read_wire<EthernetWire>(reply);
  std::swap(ethernet.source, ethernet.destination);
  write_wire(reply, 0, ethernet);
}

std::size_t reply_ipv4(ConstBytes frame, Bytes reply, Gid& destination) {
  constexpr std::uint8_t kRequest = 8;
  constexpr std::size_t kEchoAt = kIpAt + sizeof(wire::Ipv4Wire);
  if (frame.size() < kEchoAt + sizeof(EchoWire)) return 0;
  auto ip = read_wire<wire::Ipv4Wire>(frame, kIpAt);
  auto echo = read_wire<EchoWire>(frame, kEchoAt);
  const std::size_t total = ip.total_bytes.get();
  if (ip.version_and_words != kPlainHeader || ip.protocol != kProtocolIcmp ||
      (ip.fragment.get() & kFragmentBits) != 0 ||
      total < sizeof(wire::Ipv4Wire) + sizeof(EchoWire) || total > frame.size() - kIpAt ||
      kIpAt + total > reply.size() || echo.type != kRequest) {
    return 0;
  }
  const std::size_t echo_bytes = total - sizeof(wire::Ipv4Wire);
  if (checksum_finish(checksum_add(0, frame.subspan(kEchoAt, echo_bytes))) != 0) return 0;
  destination = wire::gid_of_ipv4(ip.destination.get());
  std::ranges::copy(frame.first(kIpAt + total), reply.begin());
  swap_ethernet(reply);
  std::swap(ip.source, ip.destination);
  ip.hop_limit = kTimeToLive;
  ip.fragment.set(kDontFragment);
  ip.checksum.set(0);
  ip.checksum.set(checksum_finish(checksum_add(0, std::as_bytes(std::span(&ip, 1)))));
  write_wire(reply, kIpAt, ip);
  echo.type = 0;
  echo.checksum.set(0);
  write_wire(reply, kEchoAt, echo);
  echo.checksum.set(checksum_finish(checksum_add(0, reply.subspan(kEchoAt, echo_bytes))));
  write_wire(reply, kEchoAt, echo);
  return kIpAt + total;
}

std::size_t reply_ipv6(ConstBytes frame, Bytes reply, Gid& destination) {
  constexpr std::uint8_t kRequest = 128;
  constexpr std::uint8_t kReply = 129;
  constexpr std::size_t kEchoAt = kIpAt + sizeof(wire::Ipv6Wire);
  if (frame.size() < kEchoAt + sizeof(EchoWire)) return 0;
  auto ip = read_wire<wire::Ipv6Wire>(frame, kIpAt);
  auto echo = read_wire<EchoWire>(frame, kEchoAt);
  const std::size_t bytes = ip.payload_bytes.get();
  if (ip.next_header != kProtocolIcmpv6 || bytes < sizeof(EchoWire) ||
      bytes > frame.size() - kEchoAt || kEchoAt + bytes > reply.size() || echo.type != kRequest ||
      icmpv6_checksum({ip.source}, {ip.destination}, frame.subspan(kEchoAt, bytes)) != 0) {
    return 0;
  }
  destination = {ip.destination};
  std::ranges::copy(frame.first(kEchoAt + bytes), reply.begin());
  swap_ethernet(reply);
  std::swap(ip.source, ip.destination);
  ip.hop_limit = kTimeToLive;
  write_wire(reply, kIpAt, ip);
  echo.type = kReply;
  echo.checksum.set(0);
  write_wire(reply, kEchoAt, echo);
  echo.checksum.set(icmpv6_checksum({ip.source}, {ip.destination}, reply.subspan(kEchoAt, bytes)));
  write_wire(reply, kEchoAt, echo);
  return kEchoAt + bytes;
}

}  // namespace

std::size_t build_echo_reply(ConstBytes frame, Bytes reply, Gid& destination) {
  if (frame.size() < sizeof(EthernetWire)) return 0;
  const std::uint16_t type = read_wire<EthernetWire>(frame).ether_type.get();
  if (type == kTypeIpv4) return reply_ipv4(frame, reply, destination);
  if (type == kTypeIpv6) return reply_ipv6(frame, reply, destination);
  return 0;
}

}  // namespace uroce::datapath
