// SPDX-License-Identifier: BSD-2-Clause
// Where log lines go: standard error, through a logger of our own. The application may use spdlog
// as well, so its global registry is left alone, and nothing of the library is visible outside.
// Control paths and the helper thread only, and never under the shard's lock.
#pragma once

#include <string>

#include "host/config.h"
#include "host/environment.h"

namespace uroce::engine {

using host::LogLevel;

// From the configuration in the environment; the first call counts. Also takes over the report of
// failed checks.
void open_log(const host::Environment& environment);
void log(LogLevel level, const std::string& line);

}  // namespace uroce::engine
