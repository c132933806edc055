// SPDX-License-Identifier: BSD-2-Clause
// The communication manager of IBTA chapter 12, without I/O: messages and time go in, messages and
// events come out. It makes connections (REQ, REP, RTU), ends them (DREQ, DREP), refuses them
// (REJ), asks for patience (MRA), and finds datagram services (SIDR). Alternate paths, which RoCE
// has none of, are refused (APR).
//
//   manager.connect(now, connection, request)     active side: ... kReply, then
//   manager.ready(now, connection, data)          kEstablished of the other side
//
//   manager.listen(listener)                      passive side: Host::new_connection, kRequest,
//   then manager.accept(now, connection, offer, data)  ... kEstablished
//
// A message that wants an answer is sent again, at first soon, then at intervals that double, until
// it is answered or given up. A connection may be freed after forget(), at any time but inside of
// a call of Host. Nothing is locked here, and no memory allocated.
#pragma once

#include <cstdint>
#include <span>

#include "cm/connection.h"
#include "cm/connection_table.h"
#include "uroce/time.h"

namespace uroce::cm {

enum class EventKind : std::uint8_t {
  kRequest,       // passive: accept, or reject
  kReply,         // active: ready, or reject
  kEstablished,   // passive
  kRejected,      // `reason` says why
  kUnreachable,   // no answer
  kDisconnected,  // by the peer, or its answer to us; Reason::kTimeout where that never came
  kTimeWaitExit,
  kSidrRequest,  // passive: reply_to_sidr
  kSidrReply,    // active
};

struct Event {
  EventKind kind;
  Reason reason = Reason::kNone;
  SidrStatus sidr_status = SidrStatus::kValid;
  std::uint32_t qkey = 0;                     // of a kSidrReply
  const IpAddresses* addresses = nullptr;     // of a request
  std::span<const std::byte> private_data{};  // padded with zeroes to what the message holds
};

class Host {
 public:
  virtual void send(const Route& route, const Mad& mad) = 0;
  // An identifier that no connection of this host has.
  [[nodiscard]] virtual std::uint32_t new_local_id() = 0;
  // For a request to `listener`. Null: there is no room for one more.
  [[nodiscard]] virtual Connection* new_connection(Listener& listener) = 0;
  virtual void on_event(Connection& connection, const Event& event) = 0;

 protected:
  ~Host() = default;
};

class Manager {
 public:
  explicit Manager(Host& host) : host_(host) {}
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  struct Request {
    Route route;
    std::uint64_t service_id = 0;
    IpAddresses addresses;
    PrivateData data;
  };
  // 0, or EINVAL where the state does not allow it; so do all that follow.
  [[nodiscard]] int connect(Instant now, Connection& connection, const Request& request,
                            const Offer& offer);
  [[nodiscard]] int ready(Connection& connection, const PrivateData& data);
  [[nodiscard]] int accept(Instant now, Connection& connection, const Offer& offer,
                           const PrivateData& data);
  [[nodiscard]] int reject(Connection& connection, Reason reason, const PrivateData& data);
  [[nodiscard]] int disconnect(Instant now, Connection& connection);
  // The first packet has come before the RTU. EISCONN where both have.
  [[nodiscard]] int note_established(Connection& connection);

  [[nodiscard]] int resolve_service(Instant now, Connection& connection, const Request& request);
  [[nodiscard]] int reply_to_sidr(Connection& connection, SidrStatus status, Qpn qpn,
                                  std::uint32_t qkey, const PrivateData& data);

  void listen(Listener& listener) { listeners_.push_back(listener); }
  static void stop_listening(Listener& listener) { listener.hook.unlink(); }
  // Whoever waits for an answer gets it: a request is refused, a connection ended.
  void forget(Instant now, Connection& connection);

  [[nodiscard]] bool is_used(std::uint32_t local_id) { return table_.find(local_id) != nullptr; }
  // Its peer is not there any more: as if it had said so.
  void lose_peer(Instant now, Connection& connection);

  // From `route.destination`, to `route.source`.
  void on_mad(Instant now, const Route& route, const Mad& mad);
  void on_timer(Instant now);
  [[nodiscard]] Instant next_deadline();

 private:
  using Timers = List<Connection, &Connection::timer_hook>;

  // active.cc
  void on_reply(const Route& route, const Mad& mad);
  void on_reject(Instant now, const Mad& mad);
  void on_message_receipt(Instant now, const Mad& mad);
  // passive.cc
  void on_request(Instant now, const Route& route, const Mad& mad);
  bool is_repeated(const Route& route, const RequestWire& request, const Mad& mad);
  void on_ready(const Mad& mad);
  void refuse(const Route& route, const Mad& mad, std::uint32_t local_id, std::uint32_t remote_id,
              Reason reason);
  [[nodiscard]] Listener* find_listener(std::uint64_t service_id, const Gid& address,
                                        std::uint32_t scope);
  // teardown.cc
  void on_disconnect_request(Instant now, const Route& route, const Mad& mad);
  void on_disconnect_reply(Instant now, const Mad& mad);
  void on_alternate_path(const Route& route, const Mad& mad);
  void end(Instant now, Connection& connection, const Event& why);
  void send_disconnect_reply(const Route& route, const Mad& request);
  // sidr.cc
  void on_sidr_request(const Route& route, const Mad& mad);
  void on_sidr_reply(const Mad& mad);
  // manager.cc
  [[nodiscard]] Connection* find(const IdentifiersWire& ids);
  void begin(Connection& connection, const Route& route);
  // Until it is answered.
  void send_until_answered(Instant now, Connection& connection, int transmissions);
  void send_again(Instant now, Connection& connection);
  void give_up(Instant now, Connection& connection);
  // It is nobody's any more; `event` says why.
  void drop(Connection& connection, const Event& event);
  void set_timer(Connection& connection, Instant deadline);
  static void stop_timer(Connection& connection);
  void tell(Connection& connection, const Event& event) { host_.on_event(connection, event); }

  Host& host_;
  ConnectionTable table_;
  List<Listener, &Listener::hook> listeners_;
  Timers timers_;
};

}  // namespace uroce::cm
