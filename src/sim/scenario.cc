// SPDX-License-Identifier: BSD-2-Clause
#include "sim/scenario.h"

#include <algorithm>

#include "base/prng.h"

namespace uroce::sim {
namespace {

using namespace transport;

inline constexpr std::uint32_t kPercent = 10'000;

Duration us_between(Prng& prng, std::uint32_t low, std::uint32_t high) {
  return microseconds(prng.between(low, high));
}

// Small values as likely as large ones: a factor of two more or less counts the same.
std::uint32_t log_between(Prng& prng, std::uint32_t low_power, std::uint32_t high_power) {
  const std::uint32_t power = 1U << prng.between(low_power, high_power);
  return power + prng.below(power);
}

void draw_path(Scenario& s, Prng prng) {
  LinkOptions& link = s.uplink;
  link.delay = nanoseconds(log_between(prng, 9, 19));  // 0.5 us to 1 ms
  if (prng.chance(50 * kPercent)) link.bits_per_second = 1'000'000'000ULL * log_between(prng, 0, 5);
  if (prng.chance(30 * kPercent)) link.queue_bytes = log_between(prng, 13, 17);
  if (prng.chance(20 * kPercent)) {
    link.jitter = nanoseconds(prng.below(static_cast<std::uint32_t>(link.delay.ns) * 2));
    link.keeps_order = prng.chance(50 * kPercent);
  }
  s.memory = {};
  s.memory.is_memory = true;
  s.memory.delay = nanoseconds(log_between(prng, 7, 14));
  s.memory.ring_records = log_between(prng, 2, 8);
}

// True: packets may be lost.
bool draw_faults(LinkOptions& link, Prng prng) {
  const auto is_on = [&prng] { return prng.chance(30 * kPercent); };
  if (is_on()) link.loss = log_between(prng, 10, 17);
  if (is_on()) {
    link.burst_begins = log_between(prng, 9, 14);
    link.burst_ends = prng.between(2 * kPercent, 50 * kPercent);
    link.burst_loss = prng.between(20 * kPercent, 100 * kPercent);
  }
  if (is_on()) link.duplicate = log_between(prng, 10, 18);
  if (is_on()) {
    link.reorder = log_between(prng, 10, 18);
    link.reorder_delay = nanoseconds(1 + prng.below(static_cast<std::uint32_t>(link.delay.ns) * 4));
  }
  if (is_on()) link.corrupt = log_between(prng, 9, 15);
  if (prng.chance(10 * kPercent)) {
    link.blackout_every = us_between(prng, 2'000, 20'000);
    link.blackout = us_between(prng, 10, 2'000);
  }
  if (link.bits_per_second != 0 && is_on()) link.switch_bytes_max = log_between(prng, 14, 18);
  if (prng.chance(5 * kPercent)) link.packet_bytes_max = prng.between(1'000, 4'200);
  return link.loss + link.burst_begins + link.corrupt + link.switch_bytes_max +
                 link.packet_bytes_max !=
             0 ||
         link.blackout_every.ns != 0 || link.reorder != 0 || !link.keeps_order;
}

// True: packets may be lost, for lack of room.
bool draw_nodes(Scenario& s, Prng prng) {
  bool may_lose = false;
  for (unsigned i = 0; i < s.nodes; ++i) {
    NodeOptions& node = s.node[i];
    node.stash_packets = prng.chance(20 * kPercent) ? 0 : log_between(prng, 0, 8);
    if (prng.chance(20 * kPercent)) node.refuse = log_between(prng, 10, 18);
    if (!prng.chance(20 * kPercent)) continue;
    node.turn_gap = us_between(prng, 1, 20);
    node.packets_a_turn = log_between(prng, 2, 6);
    node.inbox_packets = log_between(prng, 4, 11);
    may_lose = true;
  }
  return may_lose;
}

void draw_facts(Scenario& s, Prng prng) {
  s.uplink_facts = {.max_run_packets = static_cast<std::uint16_t>(log_between(prng, 0, 6)),
                    .max_run_bytes = log_between(prng, 12, 15),
                    .peer_window_bytes = 0,
                    .trusted_memory = false};
  if (prng.chance(60 * kPercent)) s.uplink_facts.peer_window_bytes = log_between(prng, 12, 17);
  s.memory_facts = {.max_run_packets = static_cast<std::uint16_t>(log_between(prng, 0, 8)),
                    .max_run_bytes = log_between(prng, 12, 15),
                    .peer_window_bytes = 0,
                    .trusted_memory = true};
  if (prng.chance(40 * kPercent)) s.memory_share = prng.between(20 * kPercent, 100 * kPercent);
}

void draw_application(Scenario& s, Prng prng) {
  const auto is_on = [&prng] { return prng.chance(40 * kPercent); };
  s.capacity = log_between(prng, 0, 4);
  s.message_bytes = std::min(log_between(prng, 6, 15), (256U << 10) / s.capacity);
  s.requests = log_between(prng, 3, 7);
  for (std::uint32_t& weight : s.weights) weight = prng.chance(30 * kPercent) ? 0 : prng.below(100);
  s.weights[prng.below(kSendOperationCount)] += 20;
  s.think = nanoseconds(log_between(prng, 12, 19));
  if (is_on()) s.late_poll = prng.below(90 * kPercent);
  if (is_on()) s.late_receive = prng.below(90 * kPercent);
  if (is_on()) s.disturb = log_between(prng, 6, 14);
  if (is_on()) s.poison = log_between(prng, 9, 14);
  s.signal = prng.chance(50 * kPercent) ? prng.below(100 * kPercent) : 100 * kPercent;
  if (is_on()) s.fence = prng.below(30 * kPercent);
  if (is_on()) s.use_inline = prng.below(80 * kPercent);
  s.has_srq = prng.chance(30 * kPercent);
  s.by_event = prng.chance(30 * kPercent);
  s.faulty_for = us_between(prng, 1'000, 60'000);
}

// What a patient requester has to wait for: the way there and back, a slow node's turn, and the
// messages of all others that go first.
Duration patience(const Scenario& s) {
  Duration wait = (s.uplink.delay + s.uplink.jitter + s.uplink.reorder_delay) * 4;
  if (s.uplink.bits_per_second != 0) {
    const std::uint64_t bytes =
        s.uplink.queue_bytes + 2ULL * s.connections * (s.message_bytes + 4096);
    wait = wait + nanoseconds(
                      static_cast<std::int64_t>(bytes * 8'000'000'000 / s.uplink.bits_per_second)) *
                      4;
  }
  for (const NodeOptions& node : s.node) {
    if (node.turn_gap > microseconds(1)) wait = std::max(wait, milliseconds(40));
  }
  return std::max(wait, milliseconds(1));
}

void draw_retries(Scenario& s, bool may_lose, Prng prng) {
  const Duration wait = patience(s);
  std::uint8_t timeout = 1;
  while (timeout_of(timeout) < wait) ++timeout;
  s.timeout_min = timeout;
  s.timeout_max = static_cast<std::uint8_t>(timeout + prng.below(3));
  s.may_fail = may_lose;
  if (may_lose && prng.chance(20 * kPercent)) {
    s.timeout_min = static_cast<std::uint8_t>(timeout - std::min<std::uint32_t>(timeout - 1, 6));
    s.is_impatient = true;
  }
  if (may_lose && prng.chance(30 * kPercent)) s.retry_min = 0;
  if (prng.chance(30 * kPercent)) s.rnr_retry_min = 0;
  s.read_atomic_max = static_cast<std::uint8_t>(prng.chance(30 * kPercent) ? prng.between(1, 3)
                                                                           : prng.between(1, 32));
}

void draw_other_services(Scenario& s, Prng prng) {
  if (prng.chance(30 * kPercent)) s.unreliable_connections = prng.between(1, 3);
  if (prng.chance(30 * kPercent)) s.xrc_connections = prng.between(1, 3);
  if (prng.chance(30 * kPercent)) s.datagram_ends = prng.between(1, 4);
}

}  // namespace

Scenario draw_scenario(std::uint64_t seed) {
  const Prng prng(seed);
  Scenario s;
  s.seed = seed;
  Prng size = prng.split(1);
  s.nodes = size.between(2, 3);
  s.connections = size.between(1, size.chance(50 * kPercent) ? 2 : 6);
  draw_path(s, prng.split(2));
  bool may_lose = draw_faults(s.uplink, prng.split(3));
  may_lose = draw_nodes(s, prng.split(4)) || may_lose;
  draw_facts(s, prng.split(5));
  draw_application(s, prng.split(6));
  draw_retries(s, may_lose, prng.split(7));
  draw_other_services(s, prng.split(8));
  return s;
}

}  // namespace uroce::sim
