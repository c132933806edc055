// SPDX-License-Identifier: BSD-2-Clause
// Bytes to tell whether others have come in their place; the same on every machine.
#pragma once

#include "base/prng.h"
#include "uroce/packet.h"

namespace uroce::sim {

void fill(Bytes memory, Prng prng);

}  // namespace uroce::sim
