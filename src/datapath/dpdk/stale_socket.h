// SPDX-License-Identifier: BSD-2-Clause
// A memif server listens on a socket file, and one that was killed leaves the file, on which no
// other can listen. Called by whoever has claimed the port.
#pragma once

#include "datapath/dpdk/port_spec.h"

namespace uroce::datapath {

// Removes the socket file that `spec` would listen on, if no process has it open.
void remove_stale_socket(const PortSpec& spec);

}  // namespace uroce::datapath
