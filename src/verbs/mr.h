// SPDX-License-Identifier: BSD-2-Clause
// Memory regions: what ibv_reg_mr checks before the engine may touch the memory.
#pragma once

#include <cstdint>

#include "memory/mr_table.h"
#include "verbs/pd.h"

namespace uroce::verbs {

struct Mr {
  Pd* pd = nullptr;
  memory::MemoryRegion region;
};

// Null, and errno: EINVAL for arguments, EFAULT for memory that is not mapped with the rights that
// `access` needs.
[[nodiscard]] Mr* reg_mr(Pd& pd, void* address, std::uint64_t length, std::uint64_t iova,
                         int access);
// 0, or an errno with the region as it was. The key stays.
[[nodiscard]] int rereg_mr(Mr& mr, int flags, Pd* pd, void* address, std::uint64_t length,
                           int access);
// Afterwards nothing refers to the memory.
void dereg_mr(Mr* mr);

}  // namespace uroce::verbs
