// SPDX-License-Identifier: BSD-2-Clause
// Two ends and what becomes of them: they connect, work, fail or are closed, and connect again with
// fresh queue pairs, or with the old ones once nothing of them can be on its way any more.
#pragma once

#include <cstdint>

#include "sim/end.h"

namespace uroce::sim {

class Connection final : public EventSink {
 public:
  Connection(World& world, Oracle& oracle, const Scenario& scenario, Site& a, Site& b,
             std::uint32_t index, Prng prng);

  void open();
  // All its requests are done, and it is at rest or closed for good.
  [[nodiscard]] bool is_done() const;
  // To say why it is not.
  void describe_unfinished();
  void heal();
  void stop() { state_.is_over = true; }
  void check_at_end();
  void destroy();

  [[nodiscard]] End& end(unsigned which) { return which == 0 ? a_ : b_; }
  [[nodiscard]] std::uint64_t succeeded() const {
    return a_.flow().succeeded() + b_.flow().succeeded();
  }

  void on_event(std::uint32_t what) override;

 private:
  static constexpr std::uint32_t kReopen = ~std::uint32_t{0};
  void on_both_dead();
  void draw_options();
  void check_messages(const End& from, End& to);

  ConnectionState state_;
  Prng prng_;
  End a_, b_;
  QueuePairOptions options_a_, options_b_;
  bool is_settled_ = true;  // the last life of it
  bool is_closed_for_good_ = false;
  std::uint32_t lives_ = 0;
};

}  // namespace uroce::sim
