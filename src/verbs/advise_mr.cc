// SPDX-License-Identifier: BSD-2-Clause
// All the ranges are checked before the first is brought in, and none of it under the shard's lock
// but the look-up. Of the errors that the manual page leaves open, those of mlx5 are taken.
#include "verbs/advise_mr.h"

#include <cerrno>

#include "engine/mapped_range.h"

namespace uroce::verbs {
namespace {

using memory::Access;
using memory::MemoryRegion;

// The region by value: it may go once the lock is let go.
int find_region(Pd& pd, std::uint32_t key, MemoryRegion& found) {
  engine::Engine::Section section(pd.context.engine());
  const MemoryRegion* const region = section.hca().regions().find(key);
  if (region == nullptr) return ENOENT;
  found = *region;
  return 0;
}

int check(Pd& pd, ibv_advise_mr_advice advice, const ibv_sge& range, MemoryRegion& region) {
  if (const int error = find_region(pd, range.lkey, region); error != 0) return error;
  if (region.is_window() || region.backing != memory::Backing::kOnDemand) return EINVAL;
  if (region.pd != pd.id) return EPERM;
  if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
      !memory::has(region.access, Access::kLocalWrite)) {
    return EPERM;
  }
  const std::uint64_t offset = range.addr - region.iova;
  return offset <= region.length && range.length <= region.length - offset ? 0 : EFAULT;
}

bool is_known(ibv_advise_mr_advice advice) {
  switch (static_cast<std::uint32_t>(advice)) {  // a program in C may say any number
    case IBV_ADVISE_MR_ADVICE_PREFETCH:
    case IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE:
    case IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
      return true;
    default:
      return false;
  }
}

}  // namespace

int advise_mr(Pd& pd, ibv_advise_mr_advice advice, std::uint32_t flags,
              std::span<const ibv_sge> ranges) {
  if (pd.context.engine().is_abandoned()) return EIO;
  if (!is_known(advice)) return ENOTSUP;
  if ((flags & ~std::uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) != 0 || ranges.empty()) return EINVAL;
  MemoryRegion region;
  for (const ibv_sge& range : ranges) {
    if (const int error = check(pd, advice, range, region); error != 0) return error;
  }
  // What is present to the processor is present to us.
  if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return 0;
  const auto use = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ? engine::MemoryUse::kWrite
                                                                 : engine::MemoryUse::kRead;
  for (const ibv_sge& range : ranges) {
    if (range.length == 0) continue;
    if (const int error = check(pd, advice, range, region); error != 0) return error;
    const auto base = reinterpret_cast<std::uintptr_t>(region.base);
    const std::uint64_t at = base + (range.addr - region.iova);
    if (const int error = engine::bring_in(at, range.length, use); error != 0) return error;
  }
  return 0;
}

}  // namespace uroce::verbs
