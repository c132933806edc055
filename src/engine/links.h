// SPDX-License-Identifier: BSD-2-Clause
// What an engine is made of, from the configuration: its place in the host's directory, its links,
// its port. The one file that knows the datapaths by name; a new one is chosen here.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "host/environment.h"

namespace uroce::engine {

// `device`: as libibverbs names it, "uroce0"; its files are in the tree that UROCE_TREE names.
[[nodiscard]] Result<EngineParts> make_parts(const std::string& device,
                                             const host::Environment& environment);

}  // namespace uroce::engine
