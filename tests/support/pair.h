// SPDX-License-Identifier: BSD-2-Clause
// Two endpoints, one reliable connection, and the packets between them, in virtual time. A filter
// decides each packet's fate; when nothing moves, time jumps to the next timer.
#pragma once

#include <functional>
#include <vector>

#include "support/endpoint.h"

namespace uroce::test {

class Pair {
 public:
  // How often a packet arrives: 0 lost, 1 as usual, 2 duplicated. `index` counts all packets.
  using Fate = std::function<int(unsigned index, const Packet& packet)>;

  Pair(const transport::LinkFacts& facts, const QpOptions& options, std::size_t buffer_bytes,
       Psn psn = Psn(100));

  // Until nothing is on its way and no timer runs, or `turns` are over (false).
  [[nodiscard]] bool run(const Fate& fate = nullptr, unsigned turns = 100'000);

  Endpoint a, b;
  TestQp& qp_a;
  TestQp& qp_b;
  unsigned packets = 0;

 private:
  [[nodiscard]] bool exchange(const Fate& fate);
  bool deliver(const std::vector<Packet>& sent, Endpoint& to, const Fate& fate);
};

}  // namespace uroce::test
