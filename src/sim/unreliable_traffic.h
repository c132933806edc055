// SPDX-License-Identifier: BSD-2-Clause
// The unreliable connections and the datagrams of a run, beside its reliable connections.
#pragma once

#include <cstdint>
#include <deque>

#include "sim/unreliable_end.h"

namespace uroce::sim {

class UnreliableTraffic {
 public:
  UnreliableTraffic(World& world, Oracle& oracle, const Scenario& scenario, std::deque<Site>& sites,
                    Prng prng);

  void open();
  [[nodiscard]] bool is_done() const;
  void describe_unfinished();
  void heal();
  void stop();
  void check_at_end();
  void destroy();
  [[nodiscard]] std::uint64_t succeeded() const;
  [[nodiscard]] const Arrivals& arrivals() const { return arrivals_; }

 private:
  // What both ends of a connection, or all that exchange datagrams, have in common.
  [[nodiscard]] QueuePairOptions draw_options(transport::Service service);
  UnreliableEnd& add(QueuePairOptions options);
  void add_pair();
  void add_datagrams();

  World& world_;
  Oracle& oracle_;
  const Scenario& scenario_;
  std::deque<Site>& sites_;
  Prng prng_;
  Arrivals arrivals_;
  std::deque<UnreliableEnd> ends_;
};

}  // namespace uroce::sim
