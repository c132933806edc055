// SPDX-License-Identifier: BSD-2-Clause
// The side that listens (IBTA 12.9.6, 12.9.8).
#include <cerrno>
#include <cstring>

#include "cm/manager.h"

namespace uroce::cm {
namespace {

constexpr int kReplyTransmissions = 16;
// Of REJ: which message is meant.
constexpr std::uint8_t kMeansRequest = 0 << 6;
constexpr std::uint8_t kMeansReply = 1 << 6;
constexpr std::uint8_t kMeansNeither = 2 << 6;

// IBTA 12.6.7.2: who gives up may not know the other's identifier, and is found by its own and its
// GUID.
void name_by_guid(RejectWire& wire, std::uint64_t ca_guid) {
  const Be64 guid(ca_guid);
  wire.information_length = sizeof guid << 1;
  std::memcpy(wire.information.data(), &guid, sizeof guid);
}

std::uint8_t meant_in(State state) {
  if (state == State::kRequestReceived) return kMeansRequest;
  return state == State::kReplyReceived ? kMeansReply : kMeansNeither;
}

bool serves(const Listener& listener, Service service) {
  switch (listener.serves) {
    case Serves::kAll:
      return true;
    case Serves::kRc:
      return service == Service::kRc;
    case Serves::kUc:
      return service == Service::kUc;
    case Serves::kXrc:
      return service == Service::kXrc;
    case Serves::kDatagrams:
      return false;
  }
  return false;
}

std::uint8_t meant_by(Attribute attribute) {
  if (attribute == Attribute::kRequest) return kMeansRequest;
  return attribute == Attribute::kReply ? kMeansReply : kMeansNeither;
}

}  // namespace

Listener* Manager::find_listener(std::uint64_t service_id, const Gid& address,
                                 std::uint32_t scope) {
  Listener* any = nullptr;
  for (Listener* l = listeners_.front(); l != nullptr; l = listeners_.next(*l)) {
    if (l->service_id != service_id || !l->address.covers(address, scope)) continue;
    if (!l->address.is_any()) return l;
    any = l;
  }
  return any;
}

// What was said to it is said again; while the application thinks, that it does. Where that
// connection has ended, its peer does not know it yet.
bool Manager::is_repeated(const Route& route, const RequestWire& request, const Mad& mad) {
  Connection* const known = table_.find_remote(request.ca_guid.get(), request.local_id.get());
  if (known == nullptr) return false;
  if (known->remote.qpn.value != request.qpn_and_responder_resources.high() ||
      known->state == State::kTimeWait) {
    refuse(route, mad, 0, request.local_id.get(), Reason::kStaleConnection);
  } else if (known->state == State::kRequestReceived || known->state == State::kReplySent) {
    host_.send(known->route, known->message);
  }
  return true;
}

void Manager::on_request(Instant now, const Route& route, const Mad& mad) {
  const auto request = mad.as<RequestWire>();
  if (request.local_id.get() == 0 || is_repeated(route, request, mad)) return;
  const std::uint32_t remote_id = request.local_id.get();
  const auto offer = offer_of(request);
  const auto addresses = read_ip_header(request.private_data);
  Listener* const listener =
      addresses ? find_listener(request.service_id.get(), addresses->destination, route.scope)
                : nullptr;
  if (listener == nullptr) return refuse(route, mad, 0, remote_id, Reason::kInvalidServiceId);
  if (!offer) return refuse(route, mad, 0, remote_id, Reason::kInvalidService);
  if (!serves(*listener, offer->service)) {
    return refuse(route, mad, 0, remote_id, Reason::kConsumer);
  }
  if (Connection* const former = table_.find_qpn(offer->ca_guid, offer->qpn); former != nullptr) {
    // Its owner has forgotten the connection that we still have.
    refuse(route, mad, 0, remote_id, Reason::kStaleConnection);
    if (former->state == State::kEstablished) static_cast<void>(disconnect(now, *former));
    return;
  }
  Connection* const c = host_.new_connection(*listener);
  if (c == nullptr) return;  // it asks again, and there may be room then
  begin(*c, route);
  c->remote_id = remote_id;
  c->remote = *offer;
  c->transaction = mad.header.transaction.get();
  c->service_id = request.service_id.get();
  c->state = State::kRequestReceived;
  table_.insert_remote(*c);
  c->message.set(Attribute::kMessageReceipt, c->transaction,
                 make_receipt(Attribute::kRequest, c->local_id, remote_id));
  host_.send(c->route, c->message);
  tell(*c, {.kind = EventKind::kRequest,
            .addresses = &*addresses,
            .private_data = std::span(request.private_data).subspan(kIpHeaderBytes)});
}

int Manager::accept(Instant now, Connection& connection, const Offer& offer,
                    const PrivateData& data) {
  if (connection.state != State::kRequestReceived) return EINVAL;
  connection.local = offer;
  connection.state = State::kReplySent;
  connection.message.set(Attribute::kReply, connection.transaction,
                         make_reply(connection.local_id, connection.remote_id, offer, data));
  send_until_answered(now, connection, kReplyTransmissions);
  return 0;
}

void Manager::on_ready(const Mad& mad) {
  Connection* const c = find(mad.as<IdentifiersWire>());
  if (c == nullptr || c->state != State::kReplySent) return;
  stop_timer(*c);
  c->state = State::kEstablished;
  tell(*c, {.kind = EventKind::kEstablished, .private_data = mad.as<ReadyWire>().private_data});
}

int Manager::note_established(Connection& connection) {
  if (connection.state == State::kEstablished) return EISCONN;
  if (connection.state != State::kReplySent) return EINVAL;
  stop_timer(connection);
  connection.state = State::kEstablished;
  tell(connection, {.kind = EventKind::kEstablished});
  return 0;
}

int Manager::reject(Connection& connection, Reason reason, const PrivateData& data) {
  const bool is_asked =
      connection.state == State::kRequestReceived || connection.state == State::kReplyReceived ||
      connection.state == State::kRequestSent || connection.state == State::kReplySent;
  if (!is_asked) return EINVAL;
  RejectWire wire;
  wire.local_id = Be32(connection.local_id);
  wire.remote_id = Be32(connection.remote_id);
  wire.message = meant_in(connection.state);
  wire.reason = Be16(static_cast<std::uint16_t>(reason));
  wire.private_data = padded<sizeof wire.private_data>(data);
  if (reason == Reason::kTimeout) name_by_guid(wire, connection.local.ca_guid);
  stop_timer(connection);
  connection.message.set(Attribute::kReject, connection.transaction, wire);
  ConnectionTable::erase(connection);
  connection.state = State::kIdle;
  host_.send(connection.route, connection.message);
  return 0;
}

// Where there is no connection, or none that can be told.
void Manager::refuse(const Route& route, const Mad& mad, std::uint32_t local_id,
                     std::uint32_t remote_id, Reason reason) {
  RejectWire wire;
  wire.local_id = Be32(local_id);
  wire.remote_id = Be32(remote_id);
  wire.message = meant_by(mad.attribute());
  wire.reason = Be16(static_cast<std::uint16_t>(reason));
  Mad answer;
  answer.set(Attribute::kReject, mad.header.transaction.get(), wire);
  host_.send(route, answer);
}

}  // namespace uroce::cm
