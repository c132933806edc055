// SPDX-License-Identifier: BSD-2-Clause
// What a SEND with invalidate does to the window whose key it names (IBTA 9.4.1.1.3, 10.6.5.2).
#pragma once

#include "transport/fault.h"
#include "transport/hca_state.h"

namespace uroce::transport {

// READs that came before are answered later, and yet as if it were still there.
[[nodiscard]] Fault invalidate_for_peer(HcaState& hca, Qp& qp, RKey key);

}  // namespace uroce::transport
