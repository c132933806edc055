// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/own_resolver.h"

#include <algorithm>
#include <cerrno>

#include "datapath/neighbour/arp.h"
#include "datapath/neighbour/echo.h"
#include "datapath/neighbour/nd.h"

namespace uroce::datapath {

OwnResolver::OwnResolver(const MacAddress& mac, std::span<const InterfaceAddress> addresses)
    : Resolver({}), mac_(mac), addresses_(addresses.begin(), addresses.end()) {
  const Gid link_local = link_local_of(mac);
  if (!is_own(link_local)) addresses_.push_back({link_local, 64});
}

std::size_t OwnResolver::on_frame(Instant now, ConstBytes frame, Bytes reply) {
  if (frame.size() < sizeof(EthernetWire)) return 0;
  switch (read_wire<EthernetWire>(frame).ether_type.get()) {
    case kTypeArp:
      return on_arp(now, frame, reply);
    case kTypeIpv4:
      return answer_echo(frame, reply);
    case kTypeIpv6:
      return on_ipv6(now, frame, reply);
    default:  // whatever else is on the wire is not for us
      return 0;
  }
}

std::size_t OwnResolver::poll_frame(Instant now, Bytes frame) {
  while (const auto question = table_.poll_question(now)) {
    const Gid* own = own_towards(question->address);
    if (own == nullptr) continue;
    if (question->address.is_ipv4()) {
      const MacAddress& ask = question->last_known != nullptr ? *question->last_known : kBroadcast;
      return build_arp_request(frame, mac_, *own, question->address, ask);
    }
    return build_solicitation(frame, mac_, *own, question->address, question->last_known);
  }
  return 0;
}

bool OwnResolver::is_own(const Gid& address) const {
  return std::ranges::any_of(addresses_, [&](const auto& own) { return own.gid == address; });
}

int OwnResolver::find_next_hop(const Path& path, Gid& next_hop) {
  next_hop = path.destination;
  return own_towards(path.destination) != nullptr ? 0 : EHOSTUNREACH;
}

std::size_t OwnResolver::on_arp(Instant now, ConstBytes frame, Bytes reply) {
  const auto arp = parse_arp(frame);
  if (!arp) return 0;
  if (!is_unspecified(arp->sender)) table_.on_answer(now, arp->sender, arp->sender_mac);
  if (!arp->is_request || !is_own(arp->target) || reply.size() < kArpFrameBytes) return 0;
  return build_arp_reply(reply, mac_, *arp);
}

std::size_t OwnResolver::on_ipv6(Instant now, ConstBytes frame, Bytes reply) {
  const auto message = parse_nd(frame);
  if (!message) return answer_echo(frame, reply);
  if (message->told_mac) {
    const Gid& whose = message->is_solicitation ? message->sender : message->target;
    table_.on_answer(now, whose, *message->told_mac);
  } else if (message->is_answer) {
    // RFC 4861, 7.2.4: who is asked at its address need not repeat it; Linux does not.
    table_.on_confirmation(now, message->target);
  }
  if (!message->is_solicitation || !is_own(message->target) || reply.size() < kNdFrameBytes) {
    return 0;
  }
  return build_advertisement(reply, mac_, *message);
}

std::size_t OwnResolver::answer_echo(ConstBytes frame, Bytes reply) const {
  Gid asked;
  const std::size_t bytes = build_echo_reply(frame, reply, asked);
  return bytes != 0 && is_own(asked) ? bytes : 0;
}

const Gid* OwnResolver::own_towards(const Gid& other) const {
  const auto found = std::ranges::find_if(
      addresses_, [&](const InterfaceAddress& own) { return same_subnet(own, other); });
  return found == addresses_.end() ? nullptr : &found->gid;
}

}  // namespace uroce::datapath
