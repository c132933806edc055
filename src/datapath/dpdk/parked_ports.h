// SPDX-License-Identifier: BSD-2-Clause
// Ports that are not closed when their datapath ends, but kept for the next one of this process.
//
// A memif is such a port. Closing one leaves its listening socket open (DPDK 22.11), so that the
// process could not open it again; and closing while the other side does so too can make DPDK's
// interrupt thread meet a descriptor that is gone, upon which DPDK aborts the process. Both were
// seen. At the end of the process the kernel closes everything, and the other side is told.
#pragma once

#include <memory>
#include <string>

#include "datapath/dpdk/port.h"
#include "datapath/dpdk/port_claim.h"

namespace uroce::datapath {

struct OwnedPort {
  std::unique_ptr<PortClaim> claim;
  std::unique_ptr<Port> port;
};

// What was parked under `name`, or nothing in it. Threads: any; takes a lock of its own.
[[nodiscard]] OwnedPort take_parked_port(const std::string& name);
void park_port(const std::string& name, OwnedPort owned);

}  // namespace uroce::datapath
