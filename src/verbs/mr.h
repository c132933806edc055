// SPDX-License-Identifier: BSD-2-Clause
// Memory regions: what ibv_reg_mr checks before the engine may touch the memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/mr_table.h"
#include "verbs/dmabuf.h"
#include "verbs/handles.h"
#include "verbs/pd.h"

namespace uroce::verbs {

struct Mr final : Made {
  explicit Mr(Pd& owner, const memory::MemoryRegion& of = {})
      : Made(Kind::kMr, owner.context), region(of), pd(&owner) {}

  bool is_imported = false;
  memory::MemoryRegion region;  // its key is its handle too
  Pd* pd;
  std::shared_ptr<DeviceMemory> device_memory{};  // that it lies in, or null
  DmabufMapping mapping{};

  ~Mr() {
    if (device_memory != nullptr) device_memory->users.fetch_sub(1, std::memory_order_release);
  }

 private:
  void leave_device() override;
};

// 0, EINVAL or EOPNOTSUPP for access flags alone.
[[nodiscard]] int check_access(unsigned access);
// Null, and errno: EINVAL for arguments, EFAULT for memory that is not mapped with the rights that
// `access` needs.
[[nodiscard]] Mr* reg_mr(Pd& pd, void* address, std::uint64_t length, std::uint64_t iova,
                         int access);
// All zeroes when it is read, and what is written goes nowhere; by its L_Key only.
[[nodiscard]] Mr* alloc_null_mr(Pd& pd);
// Memory behind a dma-buf. Null, and errno: EINVAL for arguments, EBADF for what is no descriptor.
[[nodiscard]] Mr* reg_dmabuf_mr(Pd& pd, std::uint64_t offset, std::uint64_t length,
                                std::uint64_t iova, int descriptor, int access);
// As reg_mr, for memory that is known to be there. The key is chosen here.
[[nodiscard]] Mr* add_region(Pd& pd, const memory::MemoryRegion& region);
// 0, or an errno with the region as it was. The key stays.
[[nodiscard]] int rereg_mr(Mr& mr, int flags, Pd* pd, void* address, std::uint64_t length,
                           int access);
// 0, and nothing refers to the memory any more; EBUSY while windows are bound to it.
[[nodiscard]] int dereg_mr(Mr* mr);

// The region again. Null, and errno: ENOENT when the domain has no such region.
[[nodiscard]] Mr* import_mr(Pd& pd, std::uint32_t handle);
// Without an end of the region.
void unimport_mr(Mr* mr);

}  // namespace uroce::verbs
