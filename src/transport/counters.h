// SPDX-License-Identifier: BSD-2-Clause
// What the transport counts, per device. Plain integers under the shard's lock.
#pragma once

#include "uroce/port_counters.h"
#include "wire/parse.h"

namespace uroce::transport {

using Counters = TransportCounters;
static_assert(Counters::kMalformedReasons == wire::kDropReasonCount);

}  // namespace uroce::transport
