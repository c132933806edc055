// SPDX-License-Identifier: BSD-2-Clause
// What an engine counted, as log lines.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace uroce::engine {

// One line for the transport, one for each link; only what is not zero.
[[nodiscard]] std::vector<std::string> describe_counters(Engine& engine);

}  // namespace uroce::engine
