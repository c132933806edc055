// SPDX-License-Identifier: BSD-2-Clause
#include "support/pair.h"

#include <algorithm>

namespace uroce::test {

Pair::Pair(const transport::LinkFacts& facts, const QpOptions& options, std::size_t buffer_bytes,
           Psn psn)
    : a(buffer_bytes),
      b(buffer_bytes),
      qp_a((a.set_link(facts), a.add_qp({0x101}, options))),
      qp_b((b.set_link(facts), b.add_qp({0x201}, options))) {
  a.to_init(qp_a);
  b.to_init(qp_b);
  a.to_rtr(qp_a, {0x201}, psn);
  b.to_rtr(qp_b, {0x101}, psn);
  a.to_rts(qp_a, psn);
  b.to_rts(qp_b, psn);
}

bool Pair::deliver(const std::vector<Packet>& sent, Endpoint& to, const Fate& fate) {
  for (const Packet& packet : sent) {
    const int times = fate ? fate(packets, packet) : 1;
    ++packets;
    for (int i = 0; i < times; ++i) to.receive(packet);
  }
  return !sent.empty();
}

bool Pair::exchange(const Fate& fate) {
  const bool moved = deliver(a.transmit(), b, fate);
  return deliver(b.transmit(), a, fate) || moved;
}

bool Pair::run(const Fate& fate, unsigned turns) {
  for (unsigned turn = 0; turn < turns; ++turn) {
    if (exchange(fate)) continue;
    const Instant next = std::min(a.next_deadline(), b.next_deadline());
    if (next == Instant::never()) return true;
    a.now = b.now = std::max(next, a.now);
    a.timers();
    b.timers();
  }
  return false;
}

}  // namespace uroce::test
