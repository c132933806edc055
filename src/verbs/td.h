// SPDX-License-Identifier: BSD-2-Clause
// A thread domain: the application's promise that one thread at a time uses what belongs to it. The
// locks of queues stay, since one that nobody else wants costs 5 ns.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "verbs/context.h"

namespace uroce::verbs {

struct Td {
  Context& context;
  std::atomic<std::uint32_t> users{0};  // parent domains
};

// Null, and errno.
[[nodiscard]] Td* alloc_td(Context& context, const ibv_td_init_attr& attributes);
// 0, or EBUSY.
[[nodiscard]] int dealloc_td(Td* td);

}  // namespace uroce::verbs
