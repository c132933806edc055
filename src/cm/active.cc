// SPDX-License-Identifier: BSD-2-Clause
// The side that asks for a connection (IBTA 12.9.6).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cm/manager.h"

namespace uroce::cm {
namespace {

// So often in all: the intervals add up to 49 s.
constexpr int kRequestTransmissions = 16;

std::uint64_t guid_in(const RejectWire& wire) {
  Be64 guid;
  std::memcpy(&guid, wire.information.data(), sizeof guid);
  return guid.get();
}

// Who does not know both identifiers can end nothing that is established.
bool is_from_the_peer(const Connection& c, const RejectWire& wire) {
  const std::uint32_t theirs = wire.local_id.get();
  if (theirs == 0) return c.state == State::kRequestSent;
  return c.remote_id == 0 || c.remote_id == theirs;
}

}  // namespace

int Manager::connect(Instant now, Connection& connection, const Request& request,
                     const Offer& offer) {
  if (connection.state != State::kIdle || connection.id_hook.is_linked()) return EINVAL;
  begin(connection, request.route);
  connection.service_id = request.service_id;
  connection.local = offer;
  connection.transaction = connection.local_id;
  connection.state = State::kRequestSent;
  connection.message.set(Attribute::kRequest, connection.transaction,
                         make_request(connection.local_id, request.service_id, request.route, offer,
                                      request.addresses, request.data));
  send_until_answered(now, connection, kRequestTransmissions);
  return 0;
}

void Manager::on_reply(const Route& route, const Mad& mad) {
  const auto reply = mad.as<ReplyWire>();
  Connection* const c = find(mad.as<IdentifiersWire>());
  if (c == nullptr) {
    return refuse(route, mad, reply.remote_id.get(), reply.local_id.get(), Reason::kInvalidId);
  }
  if (c->state == State::kEstablished && c->message.attribute() == Attribute::kReady) {
    return host_.send(c->route, c->message);  // our RTU, which was lost
  }
  // The application has not taken it yet. One that is quick needs no patience, so only who asks
  // again is told.
  if (c->state == State::kReplyReceived) return host_.send(c->route, c->message);
  if (c->state != State::kRequestSent) return;
  stop_timer(*c);
  c->remote_id = reply.local_id.get();
  c->remote = offer_of(reply, c->local.service);
  table_.insert_remote(*c);
  c->state = State::kReplyReceived;
  c->message.set(Attribute::kMessageReceipt, c->transaction,
                 make_receipt(Attribute::kReply, c->local_id, c->remote_id));
  tell(*c, {.kind = EventKind::kReply, .private_data = reply.private_data});
}

int Manager::ready(Connection& connection, const PrivateData& data) {
  if (connection.state != State::kReplyReceived) return EINVAL;
  ReadyWire ready;
  ready.local_id = Be32(connection.local_id);
  ready.remote_id = Be32(connection.remote_id);
  ready.private_data = padded<sizeof ready.private_data>(data);
  connection.message.set(Attribute::kReady, connection.transaction, ready);
  connection.state = State::kEstablished;
  host_.send(connection.route, connection.message);
  return 0;
}

void Manager::on_reject(Instant now, const Mad& mad) {
  const auto wire = mad.as<RejectWire>();
  Connection* const c = wire.remote_id.get() != 0
                            ? table_.find(wire.remote_id.get())
                            : table_.find_remote(guid_in(wire), wire.local_id.get());
  if (c == nullptr || !is_from_the_peer(*c, wire)) return;
  const Event event{.kind = EventKind::kRejected,
                    .reason = static_cast<Reason>(wire.reason.get()),
                    .private_data = wire.private_data};
  switch (c->state) {
    case State::kRequestSent:
    case State::kReplySent:
    case State::kRequestReceived:
    case State::kReplyReceived:
      return drop(*c, event);
    case State::kEstablished:
      return end(now, *c, event);
    case State::kDisconnectSent:
      return end(now, *c, {.kind = EventKind::kDisconnected});
    case State::kIdle:
    case State::kTimeWait:
    case State::kSidrRequestSent:
    case State::kSidrRequestReceived:
      return;
  }
}

// 4.096 us times two to the power of the code (IBTA 12.7.35), and not for ever.
void Manager::on_message_receipt(Instant now, const Mad& mad) {
  constexpr unsigned kLongest = 26;  // more than four minutes
  const auto wire = mad.as<MessageReceiptWire>();
  Connection* const c = find(mad.as<IdentifiersWire>());
  if (c == nullptr || (c->state != State::kRequestSent && c->state != State::kReplySent)) return;
  const unsigned code = std::min<unsigned>(wire.service_timeout >> 3, kLongest);
  const Duration patience = nanoseconds(std::int64_t{4'096} << code);
  // Whoever looks after peers that die is to know whom we wait for; until we ask again.
  if (c->state == State::kRequestSent) c->remote_id = wire.local_id.get();
  stop_timer(*c);
  set_timer(*c, now + patience);
}

}  // namespace uroce::cm
