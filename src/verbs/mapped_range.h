// SPDX-License-Identifier: BSD-2-Clause
// Is this memory mapped with the rights that a registration needs? Answered by faulting it in, up
// to a budget, which is what a NIC's driver does for all of it; what lies beyond is looked up in
// /proc/self/maps, so that a sparse region of 64 GiB registers without becoming real.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uroce::verbs {

enum class MemoryUse { kRead, kWrite };

// 0, or EFAULT as the kernel's registration says it, or ENOMEM.
[[nodiscard]] int check_mapped(std::uint64_t address, std::uint64_t length, MemoryUse use);

}  // namespace uroce::verbs
