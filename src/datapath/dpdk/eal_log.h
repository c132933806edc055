// SPDX-License-Identifier: BSD-2-Clause
// DPDK writes its log to the terminal; ours must stay silent there. Its lines come here instead,
// and the first error is kept, so that a failure can say why in one line.
#pragma once

#include <string>

namespace uroce::datapath {

// Sends DPDK's log here from now on; false when there is no memory. Before anything else of DPDK.
bool capture_eal_log();

// The first error line since the last call, without its line end; empty when there was none.
[[nodiscard]] std::string take_eal_error();

}  // namespace uroce::datapath
