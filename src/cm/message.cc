// SPDX-License-Identifier: BSD-2-Clause
#include "cm/message.h"

#include "cm/connection.h"

namespace uroce::cm {
namespace {

struct IpHeaderWire {
  std::uint8_t version = 0;
  std::uint8_t ip_version = 0;  // in the high half
  Be16 port;
  Gid source;
  Gid destination;
};
static_assert(sizeof(IpHeaderWire) == kIpHeaderBytes && alignof(IpHeaderWire) == 1);

// IPv4 addresses stand in the last four bytes, behind zeroes.
Gid without_prefix(Gid gid) {
  gid.bytes[10] = gid.bytes[11] = 0;
  return gid;
}
Gid with_prefix(Gid gid) {
  std::fill_n(gid.bytes.begin(), 10, std::uint8_t{0});
  gid.bytes[10] = gid.bytes[11] = 0xff;
  return gid;
}

constexpr std::uint16_t kNoLid = 0xffff;  // where there are none, as on Ethernet
// How long a side may take to answer, and how often a message is sent again, as the peer is told:
// 4.3 s and 15 times, which are Linux's.
constexpr std::uint8_t kResponseTimeout = 20;
constexpr std::uint8_t kRetriesMax = 15;
constexpr std::uint8_t kExtendedIsXrc = 1;  // of the extended transport type
constexpr std::uint8_t kRate = 3;           // 10 Gbit/s; no sender of ours is held to it

PathWire to_wire(const Route& route, std::uint8_t ack_timeout) {
  return {.local_lid = Be16(kNoLid),
          .remote_lid = Be16(kNoLid),
          .local_gid = route.source,
          .remote_gid = route.destination,
          .flow_and_rate = Be32(route.flow_label << 12 | kRate),
          .traffic_class = route.traffic_class,
          .hop_limit = route.hop_limit,
          .service_level = 0,
          .ack_timeout = static_cast<std::uint8_t>(ack_timeout << 3)};
}

}  // namespace

void write_ip_header(const IpAddresses& addresses, std::span<std::byte> to) {
  IpHeaderWire wire;
  wire.ip_version = addresses.is_ipv4 ? 0x40 : 0x60;
  wire.port = Be16(addresses.source_port);
  wire.source = addresses.is_ipv4 ? without_prefix(addresses.source) : addresses.source;
  wire.destination =
      addresses.is_ipv4 ? without_prefix(addresses.destination) : addresses.destination;
  std::memcpy(to.data(), &wire, sizeof wire);
}

std::optional<IpAddresses> read_ip_header(std::span<const std::byte> from) {
  IpHeaderWire wire;
  if (from.size() < sizeof wire) return std::nullopt;
  std::memcpy(&wire, from.data(), sizeof wire);
  const auto ip_version = static_cast<std::uint8_t>(wire.ip_version >> 4);
  if (wire.version != 0 || (ip_version != 4 && ip_version != 6)) return std::nullopt;
  const bool is_ipv4 = ip_version == 4;
  return IpAddresses{.source = is_ipv4 ? with_prefix(wire.source) : wire.source,
                     .destination = is_ipv4 ? with_prefix(wire.destination) : wire.destination,
                     .source_port = wire.port.get(),
                     .is_ipv4 = is_ipv4};
}

RequestWire make_request(std::uint32_t local_id, std::uint64_t service_id, const Route& route,
                         const Offer& offer, const IpAddresses& addresses,
                         const PrivateData& data) {
  RequestWire wire;
  wire.local_id = Be32(local_id);
  wire.service_id = Be64(service_id);
  wire.ca_guid = Be64(offer.ca_guid);
  wire.qpn_and_responder_resources = Be24_8(offer.qpn.value, offer.responder_resources);
  wire.eecn_and_initiator_depth = Be24_8(0, offer.initiator_depth);
  wire.remote_eecn_and_flags =
      Be24_8(0, static_cast<std::uint8_t>(kResponseTimeout << 3 |
                                          static_cast<unsigned>(offer.service) << 1 |
                                          (offer.flow_control ? 1 : 0)));
  wire.psn_and_timeouts =
      Be24_8(offer.psn, static_cast<std::uint8_t>(kResponseTimeout << 3 | offer.retry_count));
  wire.pkey = Be16(kDefaultPkey);
  wire.mtu_and_rnr = static_cast<std::uint8_t>(offer.path_mtu << 4 | offer.rnr_retry_count);
  const bool is_xrc = offer.service == Service::kXrc;
  wire.retries_and_srq = static_cast<std::uint8_t>(kRetriesMax << 4 | (offer.has_srq ? 8 : 0) |
                                                   (is_xrc ? kExtendedIsXrc : 0));
  wire.primary = to_wire(route, offer.ack_timeout);
  write_ip_header(addresses, wire.private_data);
  const auto bytes = data.bytes();
  std::copy_n(bytes.begin(), std::min(bytes.size(), kRequestPrivateBytes),
              wire.private_data.begin() + kIpHeaderBytes);
  return wire;
}

std::optional<Offer> offer_of(const RequestWire& request) {
  const std::uint8_t flags = request.remote_eecn_and_flags.low();
  const auto service = static_cast<Service>(flags >> 1 & 3);
  const bool is_extended = (request.retries_and_srq & 7) == kExtendedIsXrc;
  if (service != Service::kRc && service != Service::kUc &&
      !(service == Service::kXrc && is_extended)) {
    return std::nullopt;
  }
  return Offer{.qpn = {request.qpn_and_responder_resources.high()},
               .psn = request.psn_and_timeouts.high(),
               .service = service,
               .responder_resources = request.qpn_and_responder_resources.low(),
               .initiator_depth = request.eecn_and_initiator_depth.low(),
               .retry_count = static_cast<std::uint8_t>(request.psn_and_timeouts.low() & 7),
               .rnr_retry_count = static_cast<std::uint8_t>(request.mtu_and_rnr & 7),
               .flow_control = (flags & 1) != 0,
               .has_srq = (request.retries_and_srq & 8) != 0,
               .path_mtu = static_cast<std::uint8_t>(request.mtu_and_rnr >> 4),
               .ack_timeout = static_cast<std::uint8_t>(request.primary.ack_timeout >> 3),
               .ca_guid = request.ca_guid.get()};
}

ReplyWire make_reply(std::uint32_t local_id, std::uint32_t remote_id, const Offer& offer,
                     const PrivateData& data) {
  constexpr std::uint8_t kAckDelay = 15;
  ReplyWire wire;
  wire.local_id = Be32(local_id);
  wire.remote_id = Be32(remote_id);
  // The number of an XRC target stands where RD had its end-to-end context.
  const bool is_xrc = offer.service == Service::kXrc;
  (is_xrc ? wire.eecn : wire.qpn) = Be24_8(offer.qpn.value, 0);
  wire.psn = Be24_8(offer.psn, 0);
  wire.responder_resources = offer.responder_resources;
  wire.initiator_depth = offer.initiator_depth;
  wire.ack_delay_and_flags =
      static_cast<std::uint8_t>(kAckDelay << 3 | (offer.flow_control ? 1 : 0));
  wire.rnr_and_srq =
      static_cast<std::uint8_t>(offer.rnr_retry_count << 5 | (offer.has_srq || is_xrc ? 0x10 : 0));
  wire.ca_guid = Be64(offer.ca_guid);
  wire.private_data = padded<sizeof wire.private_data>(data);
  return wire;
}

Offer offer_of(const ReplyWire& reply, Service service) {
  return {.qpn = {service == Service::kXrc ? reply.eecn.high() : reply.qpn.high()},
          .psn = reply.psn.high(),
          .service = service,
          .responder_resources = reply.responder_resources,
          .initiator_depth = reply.initiator_depth,
          .rnr_retry_count = static_cast<std::uint8_t>(reply.rnr_and_srq >> 5),
          .flow_control = (reply.ack_delay_and_flags & 1) != 0,
          .has_srq = (reply.rnr_and_srq & 0x10) != 0,
          .ca_guid = reply.ca_guid.get()};
}

MessageReceiptWire make_receipt(Attribute of, std::uint32_t local_id, std::uint32_t remote_id) {
  // An application may take its time to answer: 2^24 * 4.096 us are 69 s, as Linux has it. What
  // answers a reply is not sent again, so that a lost one costs what the reply was asked to wait:
  // 8.6 s, and as long again for each reply that follows.
  constexpr std::uint8_t kForRequest = 24 << 3, kForReply = 21 << 3;
  MessageReceiptWire receipt;
  receipt.local_id = Be32(local_id);
  receipt.remote_id = Be32(remote_id);
  const bool is_reply = of == Attribute::kReply;
  receipt.message = is_reply ? 1 << 6 : 0 << 6;
  receipt.service_timeout = is_reply ? kForReply : kForRequest;
  return receipt;
}

}  // namespace uroce::cm
