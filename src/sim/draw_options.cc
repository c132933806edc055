// SPDX-License-Identifier: BSD-2-Clause
#include "sim/draw_options.h"

namespace uroce::sim {

QueuePairOptions draw_connection_options(Prng& prng, const Scenario& scenario) {
  QueuePairOptions options;
  options.link = prng.chance(scenario.memory_share) ? transport::kLocalLink : transport::kUplink;
  options.path_mtu = static_cast<std::uint16_t>(256U << prng.below(5));
  options.capacity = scenario.capacity;
  options.sge_max = kSgesMax;
  options.signal_all = prng.chance(Prng::kMillion / 5);
  options.min_rnr_timer = static_cast<std::uint8_t>(prng.between(1, 14));
  return options;
}

void draw_end_options(Prng& prng, const Scenario& s, QueuePairOptions& options) {
  options.timeout = static_cast<std::uint8_t>(prng.between(s.timeout_min, s.timeout_max));
  options.retry_count = static_cast<std::uint8_t>(prng.between(s.retry_min, 7));
  options.rnr_retry = static_cast<std::uint8_t>(prng.between(s.rnr_retry_min, 7));
  options.max_dest_read_atomic = static_cast<std::uint8_t>(prng.between(1, s.read_atomic_max));
}

}  // namespace uroce::sim
