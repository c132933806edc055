// SPDX-License-Identifier: BSD-2-Clause
// What all messages have in common: finding whose they are, sending again, giving up.
#include "cm/manager.h"

#include <algorithm>

namespace uroce::cm {
namespace {

// Twice as long each time, up to what the peer was told that we wait for an answer.
constexpr Duration kFirstInterval = milliseconds(100);
constexpr Duration kLongestInterval = milliseconds(4'300);

bool is_of_the_communication_manager(const MadHeader& header) {
  return header.base_version == 1 && header.management_class == 7 && header.class_version == 2 &&
         header.method == 3;
}

}  // namespace

void Manager::on_mad(Instant now, const Route& route, const Mad& mad) {
  if (!is_of_the_communication_manager(mad.header)) return;
  switch (mad.attribute()) {
    case Attribute::kRequest:
      return on_request(now, route, mad);
    case Attribute::kMessageReceipt:
      return on_message_receipt(now, mad);
    case Attribute::kReject:
      return on_reject(now, mad);
    case Attribute::kReply:
      return on_reply(route, mad);
    case Attribute::kReady:
      return on_ready(mad);
    case Attribute::kDisconnectRequest:
      return on_disconnect_request(now, route, mad);
    case Attribute::kDisconnectReply:
      return on_disconnect_reply(now, mad);
    case Attribute::kSidrRequest:
      return on_sidr_request(route, mad);
    case Attribute::kSidrReply:
      return on_sidr_reply(mad);
    case Attribute::kLoadAlternatePath:
      return on_alternate_path(route, mad);
    case Attribute::kAlternatePathResponse:
      return;  // we never ask
  }
}

// The peer names itself too; before its identifier is known, any will do.
Connection* Manager::find(const IdentifiersWire& ids) {
  Connection* const connection = table_.find(ids.remote_id.get());
  if (connection == nullptr) return nullptr;
  const bool is_known = connection->remote_id != 0;
  return !is_known || connection->remote_id == ids.local_id.get() ? connection : nullptr;
}

void Manager::begin(Connection& connection, const Route& route) {
  connection.local_id = host_.new_local_id();
  connection.remote_id = 0;  // a former peer's, maybe
  connection.route = route;
  table_.insert(connection);
}

void Manager::send_until_answered(Instant now, Connection& connection, int transmissions) {
  connection.interval = kFirstInterval;
  connection.transmissions_left = static_cast<std::uint8_t>(transmissions);
  send_again(now, connection);
}

void Manager::send_again(Instant now, Connection& connection) {
  --connection.transmissions_left;
  if (connection.state == State::kRequestSent) connection.remote_id = 0;  // anyone may answer
  set_timer(connection, now + connection.interval);
  connection.interval = std::min(connection.interval * 2, kLongestInterval);
  host_.send(connection.route, connection.message);
}

void Manager::set_timer(Connection& connection, Instant deadline) {
  connection.deadline = deadline;
  timers_.push_back(connection);
}

void Manager::stop_timer(Connection& connection) {
  connection.deadline = Instant::never();
  connection.timer_hook.unlink();
}

Instant Manager::next_deadline() {
  Instant next = Instant::never();
  for (Connection* c = timers_.front(); c != nullptr; c = timers_.next(*c)) {
    next = std::min(next, c->deadline);
  }
  return next;
}

void Manager::on_timer(Instant now) {
  // Those that are due set another timer, or none; each is looked at once.
  Timers due;
  for (Connection* c = timers_.front(); c != nullptr;) {
    Connection* const next = timers_.next(*c);
    if (c->deadline <= now) {
      c->timer_hook.unlink();
      due.push_back(*c);
    }
    c = next;
  }
  while (Connection* const c = due.pop_front()) {
    if (c->transmissions_left != 0) {
      send_again(now, *c);
    } else {
      give_up(now, *c);
    }
  }
}

void Manager::give_up(Instant now, Connection& connection) {
  stop_timer(connection);
  switch (connection.state) {
    case State::kRequestSent:
    case State::kReplySent:
      // Whoever has our message, but not we its answer, need not wait for more.
      static_cast<void>(reject(connection, Reason::kTimeout, {}));
      return tell(connection, {.kind = EventKind::kUnreachable});
    case State::kSidrRequestSent:
      return drop(connection, {.kind = EventKind::kUnreachable});
    case State::kDisconnectSent:
      return end(now, connection, {.kind = EventKind::kDisconnected, .reason = Reason::kTimeout});
    case State::kTimeWait:
      return drop(connection, {.kind = EventKind::kTimeWaitExit});
    case State::kIdle:
    case State::kReplyReceived:
    case State::kRequestReceived:
    case State::kEstablished:
    case State::kSidrRequestReceived:
      return;
  }
}

void Manager::drop(Connection& connection, const Event& event) {
  stop_timer(connection);
  ConnectionTable::erase(connection);
  connection.state = State::kIdle;
  tell(connection, event);
}

void Manager::forget(Instant now, Connection& connection) {
  switch (connection.state) {
    case State::kEstablished:
      static_cast<void>(disconnect(now, connection));
      break;
    case State::kRequestSent:
      static_cast<void>(reject(connection, Reason::kTimeout, {}));
      break;
    case State::kRequestReceived:
    case State::kReplySent:
    case State::kReplyReceived:
      static_cast<void>(reject(connection, Reason::kConsumer, {}));
      break;
    case State::kSidrRequestReceived:
      static_cast<void>(reply_to_sidr(connection, SidrStatus::kReject, {}, 0, {}));
      break;
    case State::kIdle:
    case State::kDisconnectSent:
    case State::kTimeWait:
    case State::kSidrRequestSent:
      break;
  }
  stop_timer(connection);
  ConnectionTable::erase(connection);
  connection.state = State::kIdle;
}

}  // namespace uroce::cm
