// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/mr.h"

#include <infiniband/verbs.h>

#include <cerrno>
#include <new>

#include "verbs/mapped_range.h"

namespace uroce::verbs {
namespace {

using memory::Access;

constexpr bool is_same(Access ours, unsigned theirs) {
  return static_cast<unsigned>(ours) == theirs;
}
static_assert(is_same(Access::kLocalWrite, IBV_ACCESS_LOCAL_WRITE) &&
              is_same(Access::kRemoteWrite, IBV_ACCESS_REMOTE_WRITE) &&
              is_same(Access::kRemoteRead, IBV_ACCESS_REMOTE_READ) &&
              is_same(Access::kRemoteAtomic, IBV_ACCESS_REMOTE_ATOMIC) &&
              is_same(Access::kMwBind, IBV_ACCESS_MW_BIND) &&
              is_same(Access::kZeroBased, IBV_ACCESS_ZERO_BASED) &&
              is_same(Access::kOnDemand, IBV_ACCESS_ON_DEMAND) &&
              is_same(Access::kHugeTlb, IBV_ACCESS_HUGETLB) &&
              is_same(Access::kRelaxedOrdering, IBV_ACCESS_RELAXED_ORDERING));

constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
                                  IBV_ACCESS_RELAXED_ORDERING;
constexpr unsigned kRemotelyWritten = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

int check_access(unsigned access) {
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return EOPNOTSUPP;
  if ((access & ~kKnownAccess) != 0) return EINVAL;
  // man ibv_reg_mr: remote write and atomic need local write.
  if ((access & kRemotelyWritten) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  return 0;
}

int check_region(const memory::MemoryRegion& region) {
  const auto access = static_cast<unsigned>(region.access);
  if (const int error = check_access(access); error != 0) return error;
  const auto address = reinterpret_cast<std::uintptr_t>(region.base);
  if (region.length == 0 || memory::range_wraps(address, region.length) ||
      memory::range_wraps(region.iova, region.length)) {
    return EINVAL;
  }
  const bool is_written = (access & (kRemotelyWritten | IBV_ACCESS_LOCAL_WRITE)) != 0;
  return check_mapped(address, region.length, is_written ? MemoryUse::kWrite : MemoryUse::kRead);
}

std::uint64_t iova_of(std::uint64_t wanted, Access access) {
  return memory::has(access, Access::kZeroBased) ? 0 : wanted;
}

int insert(Mr& mr) {
  engine::Engine& engine = mr.pd->context.engine();
  if (engine.is_abandoned()) return EIO;
  if (const int error = check_region(mr.region); error != 0) return error;
  if (!engine.quotas().mr.take()) return ENOMEM;
  const int error = engine.insert_region(mr.region);
  if (error != 0) engine.quotas().mr.give_back();
  return error;
}

}  // namespace

Mr* reg_mr(Pd& pd, void* address, std::uint64_t length, std::uint64_t iova, int access) {
  Mr* mr = new (std::nothrow) Mr{.pd = &pd, .region = {}};
  if (mr == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  const auto rights = static_cast<Access>(access);
  mr->region = {.iova = iova_of(iova, rights),
                .length = length,
                .base = static_cast<std::byte*>(address),
                .pd = pd.id,
                .access = rights};
  if (const int error = insert(*mr); error != 0) {
    delete mr;
    errno = error;
    return nullptr;
  }
  pd.users.fetch_add(1, std::memory_order_relaxed);
  return mr;
}

int rereg_mr(Mr& mr, int flags, Pd* pd, void* address, std::uint64_t length, int access) {
  if (mr.pd->context.engine().is_abandoned()) return EIO;
  memory::MemoryRegion changed = mr.region;
  Pd* const owner = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? pd : mr.pd;
  if (owner == nullptr || &owner->context != &mr.pd->context) return EINVAL;
  changed.pd = owner->id;
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) changed.access = static_cast<Access>(access);
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    changed.base = static_cast<std::byte*>(address);
    changed.length = length;
    changed.iova = iova_of(reinterpret_cast<std::uintptr_t>(address), changed.access);
  }
  if (const int error = check_region(changed); error != 0) return error;
  {
    engine::Engine::Section section(mr.pd->context.engine());
    memory::MrTable& table = section.hca().regions();
    table.erase(changed.key);
    // There is room and the index is free: it was just there.
    static_cast<void>(table.insert(changed));
  }
  mr.region = changed;
  owner->users.fetch_add(1, std::memory_order_relaxed);
  mr.pd->users.fetch_sub(1, std::memory_order_release);
  mr.pd = owner;
  return 0;
}

void dereg_mr(Mr* mr) {
  engine::Engine& engine = mr->pd->context.engine();
  if (!engine.is_abandoned()) {
    engine.erase_region(mr->region.key);
    engine.quotas().mr.give_back();
  }
  mr->pd->users.fetch_sub(1, std::memory_order_release);
  delete mr;
}

}  // namespace uroce::verbs
