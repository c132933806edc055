// SPDX-License-Identifier: BSD-2-Clause
#include "sim/connection.h"

#include "sim/draw_options.h"

namespace uroce::sim {

using namespace transport;

namespace {

inline constexpr std::uint32_t kMillion = Prng::kMillion;
inline constexpr Duration kReconnectAtMost = milliseconds(1);
// Longer than any packet is on its way or in an inbox. (A NIC is told to wait in the same way.)
inline constexpr Duration kPacketLifetime = milliseconds(100);

// Half of them close to where the numbers begin again.
Psn draw_psn(Prng& prng) {
  if (prng.chance(kMillion / 2)) return Psn(0xff'ffff - prng.below(64));
  return Psn(prng.below(1U << 24));
}

}  // namespace

Connection::Connection(World& world, Oracle& oracle, const Scenario& scenario, Site& a, Site& b,
                       std::uint32_t index, Prng prng)
    : state_{.owner = *this, .world = world, .oracle = oracle, .scenario = scenario},
      prng_(prng.split(1)),
      a_(state_, a, 2 * index, prng.split(2)),
      b_(state_, b, 2 * index + 1, prng.split(3)) {
  a_.set_peer(b_);
  b_.set_peer(a_);
  draw_options();
}

void Connection::draw_options() {
  const Scenario& s = state_.scenario;
  options_a_ = options_b_ = draw_connection_options(prng_, s);
  for (QueuePairOptions* end : {&options_a_, &options_b_}) draw_end_options(prng_, s, *end);
  options_a_.max_read_atomic =
      static_cast<std::uint8_t>(prng_.between(1, options_b_.max_dest_read_atomic));
  options_b_.max_read_atomic =
      static_cast<std::uint8_t>(prng_.between(1, options_a_.max_dest_read_atomic));
}

void Connection::open() {
  ++lives_;
  is_settled_ = false;
  a_.create(options_a_);
  b_.create(options_b_);
  const Psn psn_a = draw_psn(prng_);
  const Psn psn_b = draw_psn(prng_);
  a_.connect(psn_b, psn_a);
  b_.connect(psn_a, psn_b);
  state_.is_open = true;
  state_.world.trace.line(state_.world.now(), "ends %u and %u: QPs %#x and %#x connect", a_.id(),
                          b_.id(), a_.queue_pair().number().value, b_.queue_pair().number().value);
  a_.start();
  b_.start();
}

void Connection::on_event(std::uint32_t what) {
  if (what == kReopen) {
    open();
  } else if (a_.is_dead() && b_.is_dead() && !is_settled_) {
    on_both_dead();
  }
}

void Connection::on_both_dead() {
  is_settled_ = true;
  a_.settle();
  b_.settle();
  const bool is_over = !a_.wants_more() && !b_.wants_more();
  const bool reuses =
      !is_over && a_.has_queue_pair() && b_.has_queue_pair() && prng_.chance(kMillion / 2);
  if (!reuses) destroy();
  is_closed_for_good_ = is_over;
  if (is_over) return;
  const Duration pause = nanoseconds(prng_.below(static_cast<std::uint32_t>(kReconnectAtMost.ns)));
  state_.world.at(state_.world.now() + pause + (reuses ? kPacketLifetime : Duration{}), *this,
                  kReopen);
}

bool Connection::is_done() const {
  return is_closed_for_good_ || (state_.is_open && a_.is_idle() && b_.is_idle());
}

void Connection::describe_unfinished() {
  if (is_done()) return;
  for (const End* end : {&a_, &b_}) {
    if (end->is_idle() && end->is_open()) continue;
    const Flow& flow = end->flow();
    state_.oracle.violated(
        "end %u does not come to its end: %zu requests open, %zu to be "
        "received, %zu receives posted; it is %s",
        end->id(), flow.pending().size(), flow.unreceived(), end->receives_open(),
        end->is_open()   ? "open"
        : end->is_dead() ? "dead"
                         : "flushing");
  }
}

void Connection::heal() {
  state_.is_healed = true;
  if (state_.scenario.is_impatient) return;
  // What was sent again for the last time before that may still be waited for.
  state_.healed_for_good =
      state_.world.now() + timeout_of(state_.scenario.timeout_max) * 8 + milliseconds(100);
}

// IBTA 9.7.7.1.2: each message counts once, however often it was sent.
void Connection::check_messages(const End& from, End& to) {
  const bool reads_in_pieces = state_.scenario.uplink_facts.peer_window_bytes != 0;
  if (reads_in_pieces || from.flow().messages() == to.queue_pair().core().responder.msn) return;
  state_.oracle.violated("end %u has posted %u requests, and the MSN of its peer is %u", from.id(),
                         from.flow().messages(), to.queue_pair().core().responder.msn);
}

void Connection::check_at_end() {
  a_.check_at_end();
  b_.check_at_end();
  if (is_closed_for_good_) return;
  check_messages(a_, b_);
  check_messages(b_, a_);
}

void Connection::destroy() {
  a_.destroy();
  b_.destroy();
}

}  // namespace uroce::sim
