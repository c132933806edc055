// SPDX-License-Identifier: BSD-2-Clause
// What must hold of a queue pair at any time, and of a core when all its queue pairs are gone.
#pragma once

#include "sim/node.h"
#include "sim/oracle.h"
#include "transport/qp.h"

namespace uroce::sim {

// Outstanding READs, the three PSNs, the windows.
void check_limits(Oracle& oracle, const transport::Qp& qp);
// Nobody waits, owes or holds anything.
void check_nothing_left(Oracle& oracle, Node& node);

}  // namespace uroce::sim
