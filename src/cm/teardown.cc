// SPDX-License-Identifier: BSD-2-Clause
// The end of a connection (IBTA 12.9.5, 12.9.9). A DREQ is answered at once: what the application
// makes of the news is no matter of its peer's.
#include <cerrno>

#include "cm/manager.h"

namespace uroce::cm {
namespace {

// The intervals add up to 15 s.
constexpr int kDisconnectTransmissions = 8;
// How long packets of a connection may still be on their way.
constexpr Duration kTimeWait = milliseconds(1'000);

}  // namespace

int Manager::disconnect(Instant now, Connection& connection) {
  if (connection.state != State::kEstablished && connection.state != State::kReplySent) {
    return EINVAL;
  }
  DisconnectRequestWire wire;
  wire.local_id = Be32(connection.local_id);
  wire.remote_id = Be32(connection.remote_id);
  wire.remote_qpn = Be24_8(connection.remote.qpn.value, 0);
  connection.message.set(Attribute::kDisconnectRequest, connection.transaction, wire);
  connection.state = State::kDisconnectSent;
  stop_timer(connection);
  send_until_answered(now, connection, kDisconnectTransmissions);
  return 0;
}

// A connection that is unknown here has ended here, and its peer need not ask again. A peer that
// had accepted, and ends that before we were ready, has refused after all.
void Manager::on_disconnect_request(Instant now, const Route& route, const Mad& mad) {
  const auto wire = mad.as<DisconnectRequestWire>();
  Connection* const c = find(mad.as<IdentifiersWire>());
  const bool is_connected =
      c != nullptr && (c->state == State::kEstablished || c->state == State::kReplySent ||
                       c->state == State::kDisconnectSent);
  const bool is_half_made =
      c != nullptr && (c->state == State::kRequestSent || c->state == State::kReplyReceived);
  if ((is_connected || is_half_made) && wire.remote_qpn.high() != c->local.qpn.value) return;
  send_disconnect_reply(route, mad);
  if (is_connected) end(now, *c, {.kind = EventKind::kDisconnected});
  if (is_half_made) drop(*c, {.kind = EventKind::kRejected, .reason = Reason::kConsumer});
}

void Manager::send_disconnect_reply(const Route& route, const Mad& request) {
  const auto asked = request.as<DisconnectRequestWire>();
  DisconnectReplyWire wire;
  wire.local_id = asked.remote_id;
  wire.remote_id = asked.local_id;
  Mad answer;
  answer.set(Attribute::kDisconnectReply, request.header.transaction.get(), wire);
  host_.send(route, answer);
}

void Manager::on_disconnect_reply(Instant now, const Mad& mad) {
  Connection* const c = find(mad.as<IdentifiersWire>());
  if (c != nullptr && c->state == State::kDisconnectSent) {
    end(now, *c, {.kind = EventKind::kDisconnected});
  }
}

void Manager::end(Instant now, Connection& connection, const Event& why) {
  stop_timer(connection);
  connection.state = State::kTimeWait;
  connection.transmissions_left = 0;
  connection.qpn_hook.unlink();
  set_timer(connection, now + kTimeWait);
  tell(connection, why);
}

void Manager::lose_peer(Instant now, Connection& connection) {
  switch (connection.state) {
    case State::kEstablished:
    case State::kDisconnectSent:
      return end(now, connection, {.kind = EventKind::kDisconnected});
    case State::kRequestSent:
    case State::kReplySent:
    case State::kReplyReceived:
    case State::kRequestReceived:
    case State::kSidrRequestSent:
      return drop(connection, {.kind = EventKind::kUnreachable});
    case State::kIdle:
    case State::kTimeWait:
    case State::kSidrRequestReceived:
      return;
  }
}

void Manager::on_alternate_path(const Route& route, const Mad& mad) {
  constexpr std::uint8_t kUnsupported = 2;
  const auto asked = mad.as<IdentifiersWire>();
  AlternatePathResponseWire wire;
  wire.local_id = asked.remote_id;
  wire.remote_id = asked.local_id;
  wire.status = kUnsupported;
  Mad answer;
  answer.set(Attribute::kAlternatePathResponse, mad.header.transaction.get(), wire);
  host_.send(route, answer);
}

}  // namespace uroce::cm
