// SPDX-License-Identifier: BSD-2-Clause
// ibv_advise_mr: memory on demand is brought in before it is used.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "verbs/pd.h"

namespace uroce::verbs {

// 0, or an errno of man ibv_advise_mr. What is asked for is done on return, flushed or not.
[[nodiscard]] int advise_mr(Pd& pd, ibv_advise_mr_advice advice, std::uint32_t flags,
                            std::span<const ibv_sge> ranges);

}  // namespace uroce::verbs
