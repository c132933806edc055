// SPDX-License-Identifier: BSD-2-Clause
// The communication manager, fed by a peer that sends anything while an application connects,
// accepts, refuses, leaves, and time passes. Whatever comes: at most one answer to a message, no
// event for a connection that is over, and a timer exactly where something is waited for.
#include <array>
#include <memory>
#include <vector>

#include "cm/manager.h"
#include "fuzz/check.h"
#include "fuzz/commands.h"

namespace uroce::fuzz {
namespace {

using namespace cm;

constexpr std::uint64_t kService = 0x0106'1234;
constexpr std::size_t kConnectionsMax = 32;

Gid gid(std::uint8_t last) {
  Gid result;
  result.bytes[10] = result.bytes[11] = 0xff;
  result.bytes[15] = last;
  return result;
}

const Route kRoute{.source = gid(1), .destination = gid(2)};

class CmMachine final : public Host {
 public:
  CmMachine() {
    listener_.service_id = kService;
    manager_.listen(listener_);
  }
  ~CmMachine() {
    Manager::stop_listening(listener_);
    for (const auto& connection : connections_) manager_.forget(now_, *connection);
    check(manager_.next_deadline() == Instant::never(), "who forgets all waits for nothing");
  }

  void send(const Route&, const Mad& mad) override {
    check(mad.header.management_class == 7 && mad.header.method == 3, "messages are well formed");
    ++sent_;
  }
  std::uint32_t new_local_id() override { return next_id_++; }
  Connection* new_connection(Listener& listener) override {
    check(&listener == &listener_, "requests are for a listener");
    return connections_.size() < kConnectionsMax ? &make() : nullptr;
  }
  void on_event(Connection& connection, const Event& event) override {
    const bool is_over =
        event.kind == EventKind::kRejected || event.kind == EventKind::kUnreachable ||
        event.kind == EventKind::kTimeWaitExit || event.kind == EventKind::kSidrReply;
    const bool is_kept = connection.state == State::kTimeWait;
    check(!is_over || is_kept || !manager_.is_used(connection.local_id), "what is over is gone");
    check(is_over || manager_.is_used(connection.local_id), "events are about what there is");
    check((event.addresses != nullptr) ==
              (event.kind == EventKind::kRequest || event.kind == EventKind::kSidrRequest),
          "requests say where they come from");
  }

  void receive(Commands& commands) {
    Mad mad;
    mad.header.attribute = Be16(static_cast<std::uint16_t>(0x10 + commands.below(12)));
    const unsigned shape = commands.byte();
    const auto body = commands.bytes(shape >> 3 == 31 ? kMessageBytes : shape >> 3);
    std::memcpy(mad.message.data(), body.data(), body.size());
    if ((shape & 1) != 0) name_connection(commands, mad);
    if ((shape & 2) != 0) make_sound(commands, mad);
    if ((shape & 4) != 0) mad.header.class_version = commands.byte();
    const std::size_t before = sent_;
    manager_.on_mad(now_, kRoute, mad);
    check(sent_ <= before + 2, "a message has an answer at most, and may end one connection");
  }
  void act(Commands& commands) {
    Connection* const c = pick(commands);
    if (c == nullptr || commands.below(8) == 0) return begin(commands);
    const PrivateData data(std::as_bytes(commands.bytes(commands.below(16))));
    switch (commands.below(8)) {
      case 0:
        return (void)manager_.accept(now_, *c, offer(commands), data);
      case 1:
        return (void)manager_.reject(*c, static_cast<Reason>(commands.byte()), data);
      case 2:
        return (void)manager_.ready(*c, data);
      case 3:
        return (void)manager_.disconnect(now_, *c);
      case 4:
        return (void)manager_.note_established(*c);
      case 5:
        return (void)manager_.reply_to_sidr(*c, SidrStatus::kValid, {7}, 8, data);
      case 6:
        return manager_.lose_peer(now_, *c);
      default:
        return forget(*c);
    }
  }
  void pass_time(Commands& commands) {
    now_ = now_ + milliseconds(std::int64_t{1} << commands.below(20));
    manager_.on_timer(now_);
    check(manager_.next_deadline() > now_, "what is due is done");
  }
  void check_all() {
    for (const auto& connection : connections_) check_one(*connection);
  }

 private:
  Connection& make() { return *connections_.emplace_back(std::make_unique<Connection>()); }
  static Offer offer(Commands& commands) {
    return {.qpn = {commands.below(8)}, .ca_guid = commands.below(2)};
  }
  Connection* pick(Commands& commands) {
    if (connections_.empty()) return nullptr;
    return connections_[commands.byte() % connections_.size()].get();
  }
  void begin(Commands& commands) {
    if (connections_.size() == kConnectionsMax) return;
    Connection& c = make();
    const Manager::Request request{.route = kRoute,
                                   .service_id = kService,
                                   .addresses = {.source = gid(1), .destination = gid(2)},
                                   .data = {}};
    const int error = commands.flag() ? manager_.resolve_service(now_, c, request)
                                      : manager_.connect(now_, c, request, offer(commands));
    check(error == 0, "whoever is idle may begin");
  }
  void forget(Connection& c) {
    manager_.forget(now_, c);
    std::erase_if(connections_, [&c](const auto& one) { return one.get() == &c; });
  }
  void name_connection(Commands& commands, Mad& mad) {
    const Connection* const c = pick(commands);
    if (c == nullptr) return;
    const std::array<Be32, 2> ids = {Be32(c->remote_id), Be32(c->local_id)};
    std::memcpy(mad.message.data(), ids.data(), sizeof ids);
    if (mad.attribute() == Attribute::kSidrReply) std::memcpy(mad.message.data(), &ids[1], 4);
    if (mad.attribute() != Attribute::kDisconnectRequest) return;
    const Be24_8 qpn(c->local.qpn.value, 0);
    std::memcpy(mad.message.data() + sizeof ids, &qpn, sizeof qpn);
  }
  // A request as a peer makes it.
  void make_sound(Commands& commands, Mad& mad) {
    const IpAddresses addresses{.source = gid(2), .destination = gid(1), .is_ipv4 = true};
    if (mad.attribute() == Attribute::kRequest) {
      const std::uint32_t id = commands.below(8);
      mad.set(Attribute::kRequest, id,
              make_request(id, kService, kRoute, offer(commands), addresses, {}));
    } else if (mad.attribute() == Attribute::kSidrRequest) {
      SidrRequestWire wire;
      wire.request_id = Be32(commands.below(8));
      wire.service_id = Be64(kService);
      write_ip_header(addresses, wire.private_data);
      mad.set(Attribute::kSidrRequest, 1, wire);
    }
  }
  void check_one(const Connection& c) {
    const bool waits = c.state == State::kRequestSent || c.state == State::kReplySent ||
                       c.state == State::kDisconnectSent || c.state == State::kTimeWait ||
                       c.state == State::kSidrRequestSent;
    check(c.timer_hook.is_linked() == waits, "who waits has a timer, and nobody else");
    check((c.deadline != Instant::never()) == waits, "who waits has a deadline");
    check(c.id_hook.is_linked() == (c.state != State::kIdle), "who is not idle is found");
    check(c.state != State::kIdle || !c.remote_hook.is_linked(), "who is idle is not found");
  }

  Manager manager_{*this};
  Listener listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Instant now_{1};
  std::uint32_t next_id_ = 1;
  std::size_t sent_ = 0;
};

void execute(CmMachine& machine, Commands& commands) {
  switch (commands.below(4)) {
    case 0:
      return machine.act(commands);
    case 1:
      return machine.pass_time(commands);
    default:
      return machine.receive(commands);
  }
}

}  // namespace
}  // namespace uroce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace uroce::fuzz;
  Commands commands(data, bytes);
  const auto machine = std::make_unique<CmMachine>();
  while (!commands.are_over()) {
    execute(*machine, commands);
    machine->check_all();
  }
  return 0;
}
