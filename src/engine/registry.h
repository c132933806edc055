// SPDX-License-Identifier: BSD-2-Clause
// The engines of this process, one per device, shared by all who have the device open; and what a
// fork does to them: the child's are abandoned, so that what it inherited fails cleanly and what it
// opens itself is new.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/engine.h"

namespace uroce::engine {

// The engine of the device, started if need be. Release it as often as it was acquired.
[[nodiscard]] Result<Engine*> acquire_engine(const std::string& device, const Upcalls& upcalls);
// Registers the handlers of fork, if need be: whoever has handlers and locks of its own that are
// held while it opens devices calls this first, since handlers run in the opposite order before a
// fork.
void watch_forks();
// The last one stops it. No object of the device may be left.
void release_engine(Engine& engine);

}  // namespace uroce::engine
