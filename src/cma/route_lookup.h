// SPDX-License-Identifier: BSD-2-Clause
// Which address of this host the kernel would send from.
#pragma once

#include "cma/address.h"

namespace uroce::cma {

// To `destination`; `source` may prescribe the address, or be any. 0 and `source`, or what the
// kernel says: ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL ...
[[nodiscard]] int find_source(const Address& destination, Address& source);

}  // namespace uroce::cma
