// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/mr.h"

#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>
#include <new>

#include "engine/mapped_range.h"
#include "verbs/failed.h"

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

constexpr unsigned kKnownAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
    IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;
// As the kernel has them; headers of rdma-core 44 have no names for them.
constexpr unsigned kFlushGlobal = 1U << 8;
constexpr unsigned kFlushPersistent = 1U << 9;
static_assert(is_same(Access::kFlushGlobal, kFlushGlobal) &&
              is_same(Access::kFlushPersistent, kFlushPersistent));
constexpr unsigned kRemotelyWritten = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

// man ibv_reg_mr: the whole address space, on demand.
bool is_implicit(const memory::MemoryRegion& region) {
  return region.base == nullptr && region.length == SIZE_MAX;
}

int check_region(const memory::MemoryRegion& region) {
  const auto access = static_cast<unsigned>(region.access);
  if (const int error = check_access(access); error != 0) return error;
  const auto address = reinterpret_cast<std::uintptr_t>(region.base);
  if (region.length == 0 || memory::range_wraps(address, region.length) ||
      memory::range_wraps(region.iova, region.length)) {
    return EINVAL;
  }
  if (region.backing == memory::Backing::kOnDemand) {
    // man ibv_reg_mr: huge pages are for explicit ones.
    const bool is_huge = (access & IBV_ACCESS_HUGETLB) != 0;
    return is_implicit(region) && (is_huge || region.iova != 0) ? EINVAL : 0;
  }
  const bool is_written = (access & (kRemotelyWritten | IBV_ACCESS_LOCAL_WRITE)) != 0;
  const auto use = is_written ? engine::MemoryUse::kWrite : engine::MemoryUse::kRead;
  return engine::check_mapped(address, region.length, use);
}

std::uint64_t iova_of(std::uint64_t wanted, Access access) {
  return memory::has(access, Access::kZeroBased) ? 0 : wanted;
}

memory::Backing backing_of(Access access) {
  return memory::has(access, Access::kOnDemand) ? memory::Backing::kOnDemand
                                                : memory::Backing::kPresent;
}

// A region has ended through another handle than its maker's.
void strike_off(const Mr& imported) {
  Handles& handles = imported.context.handles();
  Made* const made = handles.inventory.find(Made::Kind::kMr, [&imported](const Made& each) {
    return static_cast<const Mr&>(each).region.key == imported.region.key;
  });
  if (made == nullptr) return;
  made->has_left();
  const std::lock_guard guard(handles.mutex);
  std::erase_if(handles.unimported, [made](const auto& each) { return each.get() == made; });
}

// False: windows are bound to it, and it stays.
bool leave(Mr& mr) {
  engine::Engine& engine = mr.context.engine();
  if (!engine.erase_region(mr.region.key)) return false;
  engine.quotas().mr.give_back();
  return true;
}

}  // namespace

int check_access(unsigned access) {
  // No memory here outlives the power.
  if ((access & kFlushPersistent) != 0) return EOPNOTSUPP;
  if ((access & ~(kKnownAccess | kFlushGlobal)) != 0) return EINVAL;
  // man ibv_reg_mr: remote write and atomic need local write.
  if ((access & kRemotelyWritten) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  return 0;
}

Mr* add_region(Pd& pd, const memory::MemoryRegion& region) {
  engine::Engine& engine = pd.context.engine();
  std::unique_ptr<Mr> mr(new (std::nothrow) Mr(pd, region));
  if (mr == nullptr || !engine.quotas().mr.take()) return failed(ENOMEM);
  if (const int error = engine.insert_region(mr->region); error != 0) {
    engine.quotas().mr.give_back();
    return failed(error);
  }
  pd.users.fetch_add(1, std::memory_order_relaxed);
  mr->begin();
  return mr.release();
}

Mr* reg_mr(Pd& pd, void* address, std::uint64_t length, std::uint64_t iova, int access) {
  if (pd.context.engine().is_abandoned()) return failed(EIO);
  const auto rights = static_cast<Access>(access);
  const memory::MemoryRegion region{.iova = iova_of(iova, rights),
                                    .length = length,
                                    .base = static_cast<std::byte*>(address),
                                    .pd = pd.id,
                                    .access = rights,
                                    .backing = backing_of(rights)};
  if (const int error = check_region(region); error != 0) return failed(error);
  return add_region(pd, region);
}

Mr* alloc_null_mr(Pd& pd) {
  if (pd.context.engine().is_abandoned()) return failed(EIO);
  return add_region(pd, {.length = SIZE_MAX,
                         .pd = pd.id,
                         .access = Access::kLocalWrite,
                         .backing = memory::Backing::kNull});
}

Mr* reg_dmabuf_mr(Pd& pd, std::uint64_t offset, std::uint64_t length, std::uint64_t iova,
                  int descriptor, int access) {
  constexpr unsigned kAllowed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                IBV_ACCESS_RELAXED_ORDERING;
  const auto flags = static_cast<unsigned>(access);
  if (pd.context.engine().is_abandoned()) return failed(EIO);
  if ((flags & ~kAllowed) != 0 || memory::range_wraps(iova, length)) return failed(EINVAL);
  if (const int error = check_access(flags); error != 0) return failed(error);
  if (!have_one_page_offset(offset, iova)) return failed(EINVAL);
  DmabufMapping mapping;
  const bool is_written = (flags & IBV_ACCESS_LOCAL_WRITE) != 0;
  if (const int error = mapping.map(descriptor, offset, length, is_written); error != 0) {
    return failed(error);
  }
  Mr* const mr = add_region(pd, {.iova = iova,
                                 .length = length,
                                 .base = mapping.at(offset),
                                 .pd = pd.id,
                                 .access = static_cast<Access>(flags)});
  if (mr != nullptr) swap(mr->mapping, mapping);
  return mr;
}

int rereg_mr(Mr& mr, int flags, Pd* pd, void* address, std::uint64_t length, int access) {
  if (mr.pd->context.engine().is_abandoned()) return EIO;
  // Device memory and dma-bufs are where they are; nothing to change is an error, as in the kernel.
  if (flags == 0 || mr.device_memory != nullptr || mr.mapping.is_there()) return EINVAL;
  if (mr.region.backing == memory::Backing::kNull) return EINVAL;  // man ibv_alloc_null_mr
  memory::MemoryRegion changed = mr.region;
  Pd* const owner = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? pd : mr.pd;
  if (owner == nullptr || &owner->context != &mr.pd->context) return EINVAL;
  changed.pd = owner->id;
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) changed.access = static_cast<Access>(access);
  changed.backing = backing_of(changed.access);
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    changed.base = static_cast<std::byte*>(address);
    changed.length = length;
    changed.iova = iova_of(reinterpret_cast<std::uintptr_t>(address), changed.access);
  }
  if (const int error = check_region(changed); error != 0) return error;
  {
    engine::Engine::Section section(mr.pd->context.engine());
    memory::MrTable& table = section.hca().regions();
    if (!table.erase(changed.key)) return EBUSY;  // windows are bound to it
    // There is room and the index is free: it was just there.
    static_cast<void>(table.insert(changed));
  }
  mr.region = changed;
  owner->users.fetch_add(1, std::memory_order_relaxed);
  mr.pd->users.fetch_sub(1, std::memory_order_release);
  mr.pd = owner;
  return 0;
}

// With the context no window is left by now.
void Mr::leave_device() { static_cast<void>(leave(*this)); }

int dereg_mr(Mr* mr) {
  if (mr->is_live()) {
    if (!leave(*mr)) return EBUSY;
    if (mr->is_imported) {
      strike_off(*mr);
    } else {
      mr->has_left();
    }
  }
  mr->pd->users.fetch_sub(1, std::memory_order_release);
  delete mr;
  return 0;
}

Mr* import_mr(Pd& pd, std::uint32_t handle) {
  if (pd.context.engine().is_abandoned()) return failed(EIO);
  std::unique_ptr<Mr> mr(new (std::nothrow) Mr(pd));
  if (mr == nullptr) return failed(ENOMEM);
  {
    engine::Engine::Section section(pd.context.engine());
    const memory::MemoryRegion* const region = section.hca().regions().find(handle);
    if (region != nullptr) mr->region = *region;
  }
  if (mr->region.is_window() || mr->region.pd != pd.id) return failed(ENOENT);
  mr->is_imported = true;
  pd.users.fetch_add(1, std::memory_order_relaxed);
  return mr.release();
}

void unimport_mr(Mr* mr) {
  mr->pd->users.fetch_sub(1, std::memory_order_release);
  std::shared_ptr<Mr> handle(mr);
  // The maker's own: the region goes on, and what it lies in.
  if (mr->is_imported || !mr->is_live()) return;
  Handles& handles = mr->context.handles();
  const std::lock_guard guard(handles.mutex);
  handles.unimported.push_back(std::move(handle));
}

}  // namespace uroce::verbs
