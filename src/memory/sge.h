// SPDX-License-Identifier: BSD-2-Clause
// One element of a work request's scatter/gather list, laid out as ibv_sge is (asserted in verbs),
// so that a list is taken over by a copy.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace uroce::memory {

struct Sge {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  LKey lkey{};

  friend constexpr bool operator==(const Sge&, const Sge&) = default;
};
static_assert(sizeof(Sge) == 16);

// The length of the message the list makes. It cannot wrap: 2^32 elements would be needed.
constexpr std::uint64_t total_bytes(std::span<const Sge> list) {
  std::uint64_t sum = 0;
  for (const Sge& sge : list) sum += sge.length;
  return sum;
}

}  // namespace uroce::memory
