// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/dm.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "verbs/failed.h"

namespace uroce::verbs {
namespace {

constexpr std::uint32_t kAlignmentLogMin = 6;   // a cache line
constexpr std::uint32_t kAlignmentLogMax = 21;  // a huge page
constexpr std::uint64_t kWord = 4;

bool is_within(const Dm& dm, std::uint64_t offset, std::uint64_t length) {
  return offset <= dm.memory->length && length <= dm.memory->length - offset;
}

bool is_copyable(const Dm& dm, std::uint64_t offset, std::uint64_t length) {
  return offset % kWord == 0 && length % kWord == 0 && is_within(dm, offset, length);
}

std::shared_ptr<DeviceMemory> zeroed(Context& context, std::uint32_t length,
                                     std::uint32_t alignment_log) {
  const std::size_t alignment = std::size_t{1} << std::max(alignment_log, kAlignmentLogMin);
  const std::size_t whole = (length + alignment - 1) & ~(alignment - 1);
  void* const memory = std::aligned_alloc(alignment, whole);
  if (memory == nullptr) return nullptr;
  auto* const bytes = static_cast<std::byte*>(std::memset(memory, 0, whole));
  return std::make_shared<DeviceMemory>(context, bytes, length);
}

void name(Dm& dm) {
  if (dm.context.engine().is_abandoned()) return;  // nobody imports in the child of a fork
  Handles& handles = dm.context.handles();
  const std::lock_guard guard(handles.mutex);
  dm.handle = ++handles.last_dm;
  handles.dms.emplace(dm.handle, dm.memory);
}

}  // namespace

Dm* alloc_dm(Context& context, const ibv_alloc_dm_attr& attributes) {
  if (attributes.comp_mask != 0 || attributes.length == 0) return failed(EINVAL);
  // As with mlx5: more than there is at all is no question of what is left.
  if (attributes.log_align_req > kAlignmentLogMax || attributes.length > engine::kDmBytesMax) {
    return failed(EINVAL);
  }
  engine::Quota& quota = context.engine().quotas().dm_bytes;
  const auto length = static_cast<std::uint32_t>(attributes.length);
  if (!quota.take(length)) return failed(ENOMEM);
  Dm* const dm = new (std::nothrow) Dm{.context = context};
  if (dm != nullptr) dm->memory = zeroed(context, length, attributes.log_align_req);
  if (dm == nullptr || dm->memory == nullptr) {
    delete dm;
    quota.give_back(length);
    return failed(ENOMEM);
  }
  name(*dm);
  dm->memory->begin();
  return dm;
}

void DeviceMemory::leave_device() { context.engine().quotas().dm_bytes.give_back(length); }

int free_dm(Dm* dm) {
  if (dm->memory->users.load(std::memory_order_acquire) != 0) return EBUSY;
  if (dm->memory->is_live()) {
    Handles& handles = dm->context.handles();
    const std::lock_guard guard(handles.mutex);
    handles.dms.erase(dm->handle);
  }
  dm->memory->end();
  delete dm;
  return 0;
}

Dm* import_dm(Context& context, std::uint32_t handle) {
  if (context.engine().is_abandoned()) return failed(EIO);
  Handles& handles = context.handles();
  const std::lock_guard guard(handles.mutex);
  const auto found = handles.dms.find(handle);
  if (found == handles.dms.end()) return failed(ENOENT);
  Dm* const dm =
      new (std::nothrow) Dm{.context = context, .memory = found->second, .handle = handle};
  return dm != nullptr ? dm : failed(ENOMEM);
}

void unimport_dm(Dm* dm) { delete dm; }

int copy_to_dm(Dm& dm, std::uint64_t offset, const void* from, std::size_t length) {
  if (!is_copyable(dm, offset, length)) return EINVAL;
  if (length != 0) std::memcpy(dm.memory->bytes + offset, from, length);
  return 0;
}

int copy_from_dm(void* to, const Dm& dm, std::uint64_t offset, std::size_t length) {
  if (!is_copyable(dm, offset, length)) return EINVAL;
  if (length != 0) std::memcpy(to, dm.memory->bytes + offset, length);
  return 0;
}

Mr* reg_dm_mr(Pd& pd, Dm& dm, std::uint64_t offset, std::size_t length, unsigned access) {
  int error = check_access(access);
  if (pd.context.engine().is_abandoned()) error = EIO;
  const bool is_zero_based = (access & IBV_ACCESS_ZERO_BASED) != 0;
  const bool is_on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
  if (!is_zero_based || is_on_demand || &dm.context != &pd.context ||
      !is_within(dm, offset, length)) {
    error = EINVAL;
  }
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  Mr* const mr = add_region(pd, {.iova = 0,
                                 .length = length,
                                 .base = dm.memory->bytes + offset,
                                 .pd = pd.id,
                                 .access = static_cast<memory::Access>(access)});
  if (mr == nullptr) return nullptr;
  dm.memory->users.fetch_add(1, std::memory_order_relaxed);
  mr->device_memory = dm.memory;
  return mr;
}

}  // namespace uroce::verbs
