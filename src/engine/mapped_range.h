// SPDX-License-Identifier: BSD-2-Clause
// Is this memory of the process mapped, with the rights that an access needs?
//
// For a registration it is answered by faulting the memory in, up to a budget, which is what a
// NIC's driver does for all of it; what lies beyond is looked up in /proc/self/maps, so that a
// sparse region of 64 GiB registers without becoming real. For memory on demand it is answered each
// time the memory is used, and for as much as is used (docs/decisions/0005-memory-on-demand.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/pager.h"

namespace uroce::engine {

enum class MemoryUse { kRead, kWrite };

// 0, or EFAULT as the kernel's registration says it, or ENOMEM.
[[nodiscard]] int check_mapped(std::uint64_t address, std::uint64_t length, MemoryUse use);

// All of it is there now: 0, or EFAULT. Nothing is allocated, and madvise, which programs hook, is
// not called, as it may be under the shard's lock; only where the kernel lacks the advice is
// /proc/self/maps opened and read.
[[nodiscard]] int bring_in(std::uint64_t address, std::uint64_t length, MemoryUse use);

class OnDemandPager final : public memory::Pager {
 public:
  [[nodiscard]] bool bring_in(std::byte* at, std::uint64_t length, bool writes) const override;
};

}  // namespace uroce::engine
