// SPDX-License-Identifier: BSD-2-Clause
// Two requests of one kind over a link that does to each packet what a script says: the smallest
// thing that can go wrong, for trying out every way in which it can.
#pragma once

#include <cstdint>
#include <string>

#include "sim/link.h"
#include "transport/work_request.h"

namespace uroce::test {

struct ExchangeCase {
  transport::SendOperation operation = transport::SendOperation::kSend;
  std::uint32_t packets = 1;  // of each request
  sim::Script script;
};

struct ExchangeOutcome {
  std::string violation;  // empty: none
  unsigned packets = 0;   // in all, both ways
  unsigned failed = 0;    // requests that ran out of retries
};

// So far apart packets leave.
inline constexpr Duration kPacketSpacing = microseconds(1);

[[nodiscard]] ExchangeOutcome run_exchange(const ExchangeCase& the_case);

}  // namespace uroce::test
