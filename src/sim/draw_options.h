// SPDX-License-Identifier: BSD-2-Clause
// What connections draw for their queue pairs, whatever is sent over them. The order of the draws
// is part of what a seed means.
#pragma once

#include "base/prng.h"
#include "sim/queue_pair.h"
#include "sim/scenario.h"

namespace uroce::sim {

// What both ends have alike.
QueuePairOptions draw_connection_options(Prng& prng, const Scenario& scenario);
// What each has by itself, but for how many READs it may have under way: that is up to the other.
void draw_end_options(Prng& prng, const Scenario& scenario, QueuePairOptions& options);

}  // namespace uroce::sim
