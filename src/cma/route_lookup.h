// SPDX-License-Identifier: BSD-2-Clause
// Which address of this host the kernel would send from.
#pragma once

#include "cma/address.h"

namespace uroce::cma {

// To `destination`. 0 and `source`, but for its port, or what the kernel says: ENETUNREACH,
// EHOSTUNREACH ...
[[nodiscard]] int find_source(const Address& destination, Address& source);

}  // namespace uroce::cma
