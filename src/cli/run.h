// SPDX-License-Identifier: BSD-2-Clause
// `uroce run`: makes the device tree, sets the environment, becomes the program. Nothing of uroce
// stays behind as a process.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/installation.h"
#include "cli/program.h"
#include "cli/setup.h"
#include "host/environment.h"

namespace uroce::cli {

// The environment of the program:
//   UROCE_TREE, SYSFS_PATH   the device tree
//   RDMAV_DRIVERS            our provider, without its ABI suffix, before what was there
//   LD_PRELOAD               a sanitizer's runtime (it insists on being first), what was there,
//   ours UROCE_*                  the whole configuration; UROCE_NETDEV names the chosen
//   interfaces, so
//                            that the program's devices are those of the tree
[[nodiscard]] host::Environment run_environment(host::Environment environment, const Setup& setup,
                                                const PreparedTree& tree,
                                                const Installation& installation,
                                                const std::string& sanitizer_runtime);

// Returns only when the program could not be started: 127 not found, 126 not executable, 1 else.
[[nodiscard]] int run_program(const Arguments& arguments);

}  // namespace uroce::cli
