// SPDX-License-Identifier: BSD-2-Clause
// Service identifier resolution (IBTA 12.11): which queue pair serves datagrams of a service.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cm/manager.h"

namespace uroce::cm {
namespace {

constexpr int kSidrTransmissions = 16;

// A request names its sender by nothing but its address.
std::uint64_t folded(const Gid& gid) {
  std::uint64_t halves[2];
  static_assert(sizeof halves == sizeof gid.bytes);
  std::memcpy(halves, gid.bytes.data(), sizeof halves);
  return halves[0] ^ halves[1] * 31;
}

}  // namespace

int Manager::resolve_service(Instant now, Connection& connection, const Request& request) {
  if (connection.state != State::kIdle || connection.id_hook.is_linked()) return EINVAL;
  begin(connection, request.route);
  connection.service_id = request.service_id;
  connection.transaction = connection.local_id;
  connection.state = State::kSidrRequestSent;
  SidrRequestWire wire;
  wire.request_id = Be32(connection.local_id);
  wire.pkey = Be16(kDefaultPkey);
  wire.service_id = Be64(request.service_id);
  write_ip_header(request.addresses, wire.private_data);
  const auto bytes = request.data.bytes();
  std::copy_n(bytes.begin(), std::min(bytes.size(), kSidrRequestPrivateBytes),
              wire.private_data.begin() + kIpHeaderBytes);
  connection.message.set(Attribute::kSidrRequest, connection.transaction, wire);
  send_until_answered(now, connection, kSidrTransmissions);
  return 0;
}

void Manager::on_sidr_request(const Route& route, const Mad& mad) {
  const auto request = mad.as<SidrRequestWire>();
  const std::uint64_t peer = folded(route.destination);
  const std::uint32_t remote_id = request.request_id.get();
  if (table_.find_remote(peer, remote_id) != nullptr) return;  // is being thought about
  Connection refused;
  refused.route = route;
  refused.remote_id = remote_id;
  refused.transaction = mad.header.transaction.get();
  refused.service_id = request.service_id.get();
  refused.state = State::kSidrRequestReceived;
  const auto addresses = read_ip_header(request.private_data);
  Listener* const listener =
      addresses ? find_listener(request.service_id.get(), addresses->destination, route.scope)
                : nullptr;
  if (listener == nullptr) {
    static_cast<void>(reply_to_sidr(refused, SidrStatus::kUnsupported, {}, 0, {}));
    return;
  }
  const bool is_served = listener->serves == Serves::kAll || listener->serves == Serves::kDatagrams;
  Connection* const c = is_served ? host_.new_connection(*listener) : nullptr;
  if (c == nullptr) {
    static_cast<void>(reply_to_sidr(refused, SidrStatus::kReject, {}, 0, {}));
    return;
  }
  begin(*c, route);
  c->remote_id = remote_id;
  c->remote.ca_guid = peer;
  c->transaction = refused.transaction;
  c->service_id = refused.service_id;
  c->state = State::kSidrRequestReceived;
  table_.insert_remote(*c);
  tell(*c, {.kind = EventKind::kSidrRequest,
            .addresses = &*addresses,
            .private_data = std::span(request.private_data).subspan(kIpHeaderBytes)});
}

int Manager::reply_to_sidr(Connection& connection, SidrStatus status, Qpn qpn, std::uint32_t qkey,
                           const PrivateData& data) {
  if (connection.state != State::kSidrRequestReceived) return EINVAL;
  SidrReplyWire wire;
  wire.request_id = Be32(connection.remote_id);
  wire.status = static_cast<std::uint8_t>(status);
  wire.qpn = Be24_8(qpn.value, 0);
  wire.service_id = Be64(connection.service_id);
  wire.qkey = Be32(qkey);
  wire.private_data = padded<sizeof wire.private_data>(data);
  connection.message.set(Attribute::kSidrReply, connection.transaction, wire);
  ConnectionTable::erase(connection);
  connection.state = State::kIdle;
  host_.send(connection.route, connection.message);
  return 0;
}

void Manager::on_sidr_reply(const Mad& mad) {
  const auto wire = mad.as<SidrReplyWire>();
  Connection* const c = table_.find(wire.request_id.get());
  if (c == nullptr || c->state != State::kSidrRequestSent) return;
  stop_timer(*c);
  ConnectionTable::erase(*c);
  c->state = State::kIdle;
  c->remote.qpn = {wire.qpn.high()};
  tell(*c, {.kind = EventKind::kSidrReply,
            .sidr_status = static_cast<SidrStatus>(wire.status),
            .qkey = wire.qkey.get(),
            .private_data = wire.private_data});
}

}  // namespace uroce::cm
