// SPDX-License-Identifier: BSD-2-Clause
// What may be done to a memory region, as a typed set of flags. The values are those of
// IBV_ACCESS_*, so that verbs translates by a cast (and asserts each of them).
//
// Reading by the local side is always allowed and has no flag of IBV_ACCESS_*: it needs
// Access::kNone.
#pragma once

#include <cstdint>

namespace uroce::memory {

enum class Access : std::uint32_t {
  kNone = 0,
  kLocalWrite = 1U << 0,
  kRemoteWrite = 1U << 1,
  kRemoteRead = 1U << 2,
  kRemoteAtomic = 1U << 3,
  kMwBind = 1U << 4,
  kZeroBased = 1U << 5,
  kOnDemand = 1U << 6,
  kHugeTlb = 1U << 7,
  kFlushGlobal = 1U << 8,
  kFlushPersistent = 1U << 9,
  kRelaxedOrdering = 1U << 20,
  // Ours: may be used by its L_Key. Regions have it and windows have not (mr_table.h).
  kLocal = 1U << 31,
};

constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr Access operator&(Access a, Access b) {
  return static_cast<Access>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}

// Every flag of `needed` is in `access`.
constexpr bool has(Access access, Access needed) { return (access & needed) == needed; }

static_assert(has(Access::kRemoteRead | Access::kLocalWrite, Access::kRemoteRead));
static_assert(!has(Access::kRemoteRead, Access::kRemoteRead | Access::kLocalWrite));
static_assert(has(Access::kNone, Access::kNone));

}  // namespace uroce::memory
