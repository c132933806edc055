// SPDX-License-Identifier: BSD-2-Clause
// A protection domain: an identity, and how many objects use it (man ibv_dealloc_pd: EBUSY).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.h"
#include "verbs/context.h"

namespace uroce::verbs {

struct Pd {
  Context& context;
  PdId id;
  std::atomic<std::uint32_t> users{0};
};

// Null, and errno.
[[nodiscard]] Pd* alloc_pd(Context& context);
// 0, or EBUSY.
[[nodiscard]] int dealloc_pd(Pd* pd);

}  // namespace uroce::verbs
