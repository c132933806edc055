// SPDX-License-Identifier: BSD-2-Clause
// Two communication managers in virtual time, and a network between them that loses, duplicates and
// reorders what it is told to.
//
//   World world;
//   Connection& active = world.left.connect({.private_data = "hello"});
//   world.run_for(seconds(1));
//   EXPECT_EQ(world.left.of(active), "reply");          // what its application was told
//
// An application answers as its `habits` say, after the manager's call has returned.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "cm/manager.h"

namespace uroce::cm::test {

constexpr Duration seconds(std::int64_t n) { return milliseconds(1'000 * n); }

inline constexpr std::uint64_t kService = 0x0000'0000'0106'1234;  // rdma_cm's, TCP, port 0x1234

constexpr Gid ipv4(std::uint8_t last) {
  return Gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}};
}
constexpr Gid ipv6(std::uint8_t last) {
  return Gid{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
}

inline PrivateData data_of(std::string_view text) {
  return PrivateData(std::as_bytes(std::span(text.data(), text.size())));
}
// Without the padding.
inline std::string text_of(std::span<const std::byte> data) {
  std::string text(reinterpret_cast<const char*>(data.data()), data.size());
  return text.substr(0, text.find('\0'));
}

inline const char* name(EventKind kind) {
  constexpr const char* kNames[] = {"request",        "reply",        "established",
                                    "rejected",       "unreachable",  "disconnected",
                                    "time-wait exit", "SIDR request", "SIDR reply"};
  return kNames[static_cast<std::size_t>(kind)];
}

struct Seen {
  const Connection* connection;
  EventKind kind;
  Reason reason;
  SidrStatus sidr_status;
  std::uint32_t qkey;
  std::string data;
  std::size_t data_bytes;
  IpAddresses addresses;
};

// What an application does without being asked.
struct Habits {
  bool accepts = true;
  bool is_ready = true;
  bool answers_sidr = true;
};

class World;

class Side final : public Host {
 public:
  Side(World& world, std::uint8_t number) : world_(world), number_(number) {}

  void send(const Route& route, const Mad& mad) override;
  std::uint32_t new_local_id() override { return std::uint32_t{number_} << 24 | next_id_++; }
  Connection* new_connection(Listener&) override { return has_room ? &make() : nullptr; }
  void on_event(Connection& connection, const Event& event) override;

  Connection& make() { return *connections.emplace_back(std::make_unique<Connection>()); }
  [[nodiscard]] Offer offer(std::uint32_t qpn) const {
    return {.qpn = {qpn},
            .psn = qpn * 3,
            .responder_resources = 4,
            .initiator_depth = 5,
            .path_mtu = 3,
            .ack_timeout = 14,
            .ca_guid = guid()};
  }
  [[nodiscard]] std::uint64_t guid() const { return 0x0200'0000'0000'0000 + number_; }
  [[nodiscard]] Gid gid() const { return ipv4(number_); }
  [[nodiscard]] Manager::Request request(std::string_view data = {}) const;

  // To the other side, from a queue pair of its own.
  Connection& connect(std::string_view data = {});
  Connection& resolve(std::string_view data = {});
  void accept(Connection& connection, std::string_view data = {});

  // What the application was told about a connection, in words.
  [[nodiscard]] std::string of(const Connection& connection) const;
  [[nodiscard]] const Seen& last() const { return seen.back(); }
  // The connection made last.
  [[nodiscard]] Connection& newest() { return *connections.back(); }
  [[nodiscard]] bool is_quiet();

  Manager manager{*this};
  Habits habits;
  bool has_room = true;
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<Seen> seen;
  std::uint32_t next_qpn = 0x300;
  std::deque<std::function<void()>> to_do;

 private:
  World& world_;
  std::uint8_t number_;
  std::uint32_t next_id_ = 1;
};

struct Network {
  std::uint32_t lost = 0, doubled = 0;  // of a million
  Duration shortest = microseconds(10), longest = microseconds(10);
  std::function<bool(std::size_t number, const Mad& mad)> loses;  // the number counts from 0
};

class World {
 public:
  explicit World(std::uint64_t seed = 1) : prng_(seed) {
    listener.service_id = kService;
    right.manager.listen(listener);
  }
  ~World() {
    Manager::stop_listening(listener);
    for (Side* side : {&left, &right}) {
      for (auto& connection : side->connections) side->manager.forget(now, *connection);
    }
  }

  void send(const Route& route, const Mad& mad) {
    sent.push_back(mad);
    const std::size_t number = sent.size() - 1;
    const bool is_lost =
        prng_.chance(network.lost) || (network.loses != nullptr && network.loses(number, mad));
    if (is_lost) return;
    const int copies = prng_.chance(network.doubled) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      const auto span = static_cast<std::uint32_t>(network.longest.ns - network.shortest.ns);
      const Duration delay = network.shortest + nanoseconds(prng_.between(0, span));
      after(delay, [this, route, mad] { deliver(route, mad); });
    }
  }
  void after(Duration delay, std::function<void()> task) {
    to_come_.emplace(now + delay, std::move(task));
  }

  // Until then, or until nothing will ever happen any more.
  void run_until(Instant end) {
    do_what_is_to_do();
    while (next_event() <= end) step();
    now = end;
  }
  void run_for(Duration duration) { run_until(now + duration); }
  // For ever: true if it ends, within a day.
  bool run_out() {
    const Instant end = now + seconds(86'400);
    while (next_event() <= end) step();
    return next_event() == Instant::never();
  }

  // A message from nowhere to the right side.
  void inject(const Mad& mad) { right.manager.on_mad(now, route_to_right(), mad); }
  [[nodiscard]] Route route_to_right() const {
    return {.source = right.gid(), .destination = left.gid()};
  }
  [[nodiscard]] std::size_t count(Attribute attribute) const {
    return static_cast<std::size_t>(std::count_if(
        sent.begin(), sent.end(), [=](const Mad& mad) { return mad.attribute() == attribute; }));
  }

  Instant now{1'000'000'000};
  Network network;
  Side left{*this, 1};
  Side right{*this, 2};
  Listener listener;  // of the right side
  std::vector<Mad> sent;

 private:
  void deliver(Route route, const Mad& mad) {
    Side& side = route.destination == left.gid() ? left : right;
    std::swap(route.source, route.destination);
    side.manager.on_mad(now, route, mad);
  }
  Instant next_event() {
    const Instant next = std::min(left.manager.next_deadline(), right.manager.next_deadline());
    return to_come_.empty() ? next : std::min(next, to_come_.begin()->first);
  }
  void step() {
    now = std::max(now, next_event());
    while (!to_come_.empty() && to_come_.begin()->first <= now) {
      const auto task = to_come_.extract(to_come_.begin()).mapped();
      task();
      do_what_is_to_do();
    }
    for (Side* side : {&left, &right}) {
      if (side->manager.next_deadline() <= now) side->manager.on_timer(now);
    }
    do_what_is_to_do();
  }
  void do_what_is_to_do() {
    for (Side* side : {&left, &right}) {
      while (!side->to_do.empty()) {
        const auto task = side->to_do.front();
        side->to_do.pop_front();
        task();
      }
    }
  }

  Prng prng_;
  std::multimap<Instant, std::function<void()>> to_come_;
};

inline void Side::send(const Route& route, const Mad& mad) { world_.send(route, mad); }

inline void Side::on_event(Connection& connection, const Event& event) {
  seen.push_back({&connection, event.kind, event.reason, event.sidr_status, event.qkey,
                  text_of(event.private_data), event.private_data.size(),
                  event.addresses != nullptr ? *event.addresses : IpAddresses{}});
  if (event.kind == EventKind::kRequest && habits.accepts) {
    to_do.push_back([this, &connection] { accept(connection, "welcome"); });
  }
  if (event.kind == EventKind::kReply && habits.is_ready) {
    to_do.push_back([this, &connection] { (void)manager.ready(connection, data_of("go")); });
  }
  if (event.kind == EventKind::kSidrRequest && habits.answers_sidr) {
    to_do.push_back([this, &connection] {
      (void)manager.reply_to_sidr(connection, SidrStatus::kValid, {0x777}, 0x1234'5678,
                                  data_of("datagrams"));
    });
  }
}

inline Manager::Request Side::request(std::string_view data) const {
  const Side& other = this == &world_.left ? world_.right : world_.left;
  return {.route = {.source = gid(), .destination = other.gid()},
          .service_id = kService,
          .addresses = {.source = gid(),
                        .destination = other.gid(),
                        .source_port = 0xabc,
                        .is_ipv4 = true},
          .data = data_of(data)};
}

inline Connection& Side::connect(std::string_view data) {
  Connection& connection = make();
  EXPECT_EQ(manager.connect(world_.now, connection, request(data), offer(next_qpn++)), 0);
  return connection;
}

inline Connection& Side::resolve(std::string_view data) {
  Connection& connection = make();
  EXPECT_EQ(manager.resolve_service(world_.now, connection, request(data)), 0);
  return connection;
}

inline void Side::accept(Connection& connection, std::string_view data) {
  (void)manager.accept(world_.now, connection, offer(next_qpn++), data_of(data));
}

inline std::string Side::of(const Connection& connection) const {
  std::string words;
  for (const Seen& one : seen) {
    if (one.connection == &connection)
      words += (words.empty() ? "" : ", ") + std::string(name(one.kind));
  }
  return words;
}

inline bool Side::is_quiet() {
  for (const auto& connection : connections) {
    if (connection->state != State::kIdle || manager.is_used(connection->local_id)) return false;
  }
  return manager.next_deadline() == Instant::never();
}

}  // namespace uroce::cm::test
