// SPDX-License-Identifier: BSD-2-Clause
#include "sim/simulation.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "sim/connection.h"
#include "sim/invariants.h"
#include "sim/link.h"
#include "sim/node.h"
#include "sim/oracle.h"
#include "sim/site.h"
#include "sim/unreliable_traffic.h"
#include "sim/world.h"
#include "sim/xrc_connection.h"

namespace uroce::sim {
namespace {

using namespace transport;

// A run or a packet with its headers, pad and ICRC.
inline constexpr std::size_t kPacketBytesMax = (64 << 10) + 256;
// When the applications are over, the network has to be empty by then.
inline constexpr Duration kTimeToRest = milliseconds(10'000);

class Simulation final : private EventSink {
 public:
  Simulation(const Scenario& scenario, const Spectators& spectators);
  Outcome run();

 private:
  enum What : std::uint32_t { kHeal, kWrong };

  void on_event(std::uint32_t what) override;
  void build_links();
  void build_connections();
  void heal();
  void commit_wrong();
  [[nodiscard]] bool is_done() const;
  void run_until_done();
  void run_until_rest();
  void check_at_end();
  [[nodiscard]] Outcome outcome();

  Scenario scenario_;
  Prng prng_;
  World world_;
  Oracle oracle_;
  std::deque<Node> nodes_;
  std::deque<Link> links_;
  std::deque<Site> sites_;
  std::deque<Connection> connections_;
  std::deque<XrcConnection> xrc_connections_;
  std::optional<UnreliableTraffic> unreliable_;
  Instant start_;
  bool is_wrong_done_ = false;
};

Simulation::Simulation(const Scenario& scenario, const Spectators& spectators)
    : scenario_(scenario), prng_(scenario.seed), world_(kPacketBytesMax), oracle_(world_) {
  world_.trace.print_to(spectators.trace);
  world_.trace.capture_to(spectators.capture);
  if (spectators.capture != nullptr) spectators.capture->begin(scenario.seed, scenario.nodes);
  start_ = world_.now();
  for (unsigned i = 0; i < scenario.nodes; ++i) {
    Node& node = nodes_.emplace_back(world_, i, scenario.node[i], prng_.split(100 + i));
    node.set_link(kUplink, scenario.uplink_facts);
    node.set_link(kLocalLink, scenario.memory_facts);
    sites_.emplace_back(world_, oracle_, node, scenario_, prng_.split(200 + i));
  }
  build_links();
  build_connections();
  unreliable_.emplace(world_, oracle_, scenario_, sites_, prng_.split(600));
  world_.at(start_ + scenario.faulty_for, *this, kHeal);
  if (scenario.sabotage != Sabotage::kNone) {
    world_.at(start_ + nanoseconds(scenario.faulty_for.ns / 4), *this, kWrong);
  }
}

void Simulation::build_links() {
  for (unsigned from = 0; from < scenario_.nodes; ++from) {
    for (unsigned to = 0; to < scenario_.nodes; ++to) {
      const Prng prng = prng_.split(300 + from * kNodesMax + to);
      nodes_[from].connect(
          kUplink, to,
          links_.emplace_back(world_, scenario_.uplink, prng.split(1), from, to, nodes_[to]));
      nodes_[from].connect(
          kLocalLink, to,
          links_.emplace_back(world_, scenario_.memory, prng.split(2), from, to, nodes_[to]));
    }
  }
}

void Simulation::build_connections() {
  Prng prng = prng_.split(400);
  for (unsigned i = 0; i < scenario_.connections; ++i) {
    Site& a = sites_[prng.below(scenario_.nodes)];
    Site& b = sites_[prng.below(scenario_.nodes)];
    connections_.emplace_back(world_, oracle_, scenario_, a, b, i, prng_.split(500 + i));
  }
  prng = prng_.split(700);
  for (unsigned i = 0; i < scenario_.xrc_connections; ++i) {
    Site& a = sites_[prng.below(scenario_.nodes)];
    Site& b = sites_[prng.below(scenario_.nodes)];
    xrc_connections_.emplace_back(world_, oracle_, scenario_, a, b, i, prng_.split(800 + i));
  }
}

void Simulation::on_event(std::uint32_t what) {
  if (what == kHeal) {
    heal();
  } else {
    commit_wrong();
  }
}

void Simulation::heal() {
  world_.trace.line(world_.now(), "the faults stop");
  for (Link& link : links_) link.heal();
  for (Node& node : nodes_) node.heal();
  for (Connection& connection : connections_) connection.heal();
  for (XrcConnection& connection : xrc_connections_) connection.heal();
  unreliable_->heal();
}

void Simulation::commit_wrong() {
  End& end = connections_.front().end(0);
  switch (scenario_.sabotage) {
    case Sabotage::kNone:
      return;
    case Sabotage::kFlippedPayload:
      for (Node& node : nodes_) node.damage_next_payload();
      return;
    case Sabotage::kStrayByte:
      end.write_stray_byte();
      is_wrong_done_ = true;
      return;
    case Sabotage::kRepeatedAtomic:
      end.repeat_atomic();
      is_wrong_done_ = true;
      return;
    case Sabotage::kLostCompletion:
    case Sabotage::kRepeatedCompletion:
    case Sabotage::kForgottenReceive:
      for (Site& site : sites_) site.sabotage(scenario_.sabotage);
      return;
  }
}

bool Simulation::is_done() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const Connection& connection) { return connection.is_done(); }) &&
         std::all_of(xrc_connections_.begin(), xrc_connections_.end(),
                     [](const XrcConnection& connection) { return connection.is_done(); }) &&
         unreliable_->is_done();
}

void Simulation::run_until_done() {
  const Instant limit = start_ + scenario_.faulty_for + scenario_.time_to_finish;
  constexpr unsigned kStepsBetweenLooks = 64;
  for (unsigned step = 0; !oracle_.is_violated(); ++step) {
    if (!world_.step(limit)) break;
    if (step % kStepsBetweenLooks == 0 && is_done()) return;
  }
  for (Connection& connection : connections_) connection.describe_unfinished();
  for (XrcConnection& connection : xrc_connections_) connection.describe_unfinished();
  unreliable_->describe_unfinished();
}

// Applications are over; what is on its way arrives, and no timer goes on for ever.
void Simulation::run_until_rest() {
  for (Connection& connection : connections_) connection.stop();
  for (XrcConnection& connection : xrc_connections_) connection.stop();
  unreliable_->stop();
  const Instant limit = std::max(world_.now(), start_ + scenario_.faulty_for) + kTimeToRest;
  while (!oracle_.is_violated() && world_.step(limit)) {
  }
  if (!world_.is_at_rest()) oracle_.violated("there is no rest");
}

void Simulation::check_at_end() {
  for (Site& site : sites_) site.poll();
  for (Connection& connection : connections_) connection.check_at_end();
  for (XrcConnection& connection : xrc_connections_) connection.check_at_end();
  unreliable_->check_at_end();
  for (Connection& connection : connections_) connection.destroy();
  for (XrcConnection& connection : xrc_connections_) connection.destroy();
  unreliable_->destroy();
  for (Site& site : sites_) site.check_at_end();
  for (Node& node : nodes_) check_nothing_left(oracle_, node);
  if (!world_.packets.is_unused()) oracle_.violated("packets are lost in the simulator");
  for (const Link& link : links_) {
    if (link.counters().undetected != 0) oracle_.violated("an ICRC was right, and the packet not");
  }
}

Outcome Simulation::outcome() {
  Outcome outcome{.violation = oracle_.story(), .hash = world_.trace.hash()};
  outcome.packets = world_.packets_sent;
  outcome.elapsed = world_.now() - start_;
  outcome.was_sabotaged = is_wrong_done_;
  outcome.requests += unreliable_->succeeded();
  outcome.arrivals = unreliable_->arrivals();
  for (const Link& link : links_) outcome.lost += link.counters().lost;
  for (const Connection& connection : connections_) outcome.requests += connection.succeeded();
  for (const XrcConnection& connection : xrc_connections_) {
    outcome.requests += connection.succeeded();
  }
  for (Node& node : nodes_) {
    outcome.retransmitted += node.hca().counters().retransmitted_packets;
    outcome.was_sabotaged |= node.has_damaged();
  }
  for (const Site& site : sites_) outcome.was_sabotaged |= site.has_wronged();
  return outcome;
}

Outcome Simulation::run() {
  for (Connection& connection : connections_) connection.open();
  for (XrcConnection& connection : xrc_connections_) connection.open();
  unreliable_->open();
  run_until_done();
  if (!oracle_.is_violated()) run_until_rest();
  if (!oracle_.is_violated()) check_at_end();
  return outcome();
}

}  // namespace

std::string replay_command(std::uint64_t seed) {
  const std::string number = std::to_string(seed);
  return "uroce-sim --seed " + number + " --trace --pcap seed-" + number + ".pcapng";
}

Outcome simulate(const Scenario& scenario, const Spectators& spectators) {
  const auto simulation = std::make_unique<Simulation>(scenario, spectators);
  return simulation->run();
}

}  // namespace uroce::sim
