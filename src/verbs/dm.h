// SPDX-License-Identifier: BSD-2-Clause
// Device memory (man ibv_alloc_dm). There is no device whose memory it could be, so it is memory of
// the process like any other, with the rules that programs know: it has no address, it is copied in
// words of four bytes, and a region in it begins at 0.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "verbs/mr.h"
#include "verbs/pd.h"

namespace uroce::verbs {

struct Dm {
  Context& context;
  std::shared_ptr<DeviceMemory> memory{};
  std::uint32_t handle = 0;
};

// Null, and errno: EINVAL for arguments, ENOMEM for more than is left. Works in a forked child too.
[[nodiscard]] Dm* alloc_dm(Context& context, const ibv_alloc_dm_attr& attributes);
// 0, or EBUSY while there are regions in it.
[[nodiscard]] int free_dm(Dm* dm);

// The memory again, for another context of the same descriptor. Null, and errno: ENOENT.
[[nodiscard]] Dm* import_dm(Context& context, std::uint32_t handle);
// The memory stays as long as anybody has it, or a region lies in it.
void unimport_dm(Dm* dm);

// 0, or EINVAL for what is not in it or not whole words.
[[nodiscard]] int copy_to_dm(Dm& dm, std::uint64_t offset, const void* from, std::size_t length);
[[nodiscard]] int copy_from_dm(void* to, const Dm& dm, std::uint64_t offset, std::size_t length);

// Null, and errno.
[[nodiscard]] Mr* reg_dm_mr(Pd& pd, Dm& dm, std::uint64_t offset, std::size_t length,
                            unsigned access);

}  // namespace uroce::verbs
