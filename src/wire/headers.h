// SPDX-License-Identifier: BSD-2-Clause
// All headers from the BTH on. For each there is a value (`Reth`, what the transport works with), a
// wire struct (`RethWire`, as it lies in the packet), and `to_wire`/`from_wire` between them; the
// BTH goes by words instead (`to_words`, `store_bth`).
#pragma once

#include "wire/aeth.h"        // IWYU pragma: export
#include "wire/atomic_eth.h"  // IWYU pragma: export
#include "wire/bth.h"         // IWYU pragma: export
#include "wire/deth.h"        // IWYU pragma: export
#include "wire/feth.h"        // IWYU pragma: export
#include "wire/immediate.h"   // IWYU pragma: export
#include "wire/reth.h"        // IWYU pragma: export
#include "wire/xrceth.h"      // IWYU pragma: export
