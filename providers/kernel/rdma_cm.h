// SPDX-License-Identifier: BSD-2-Clause
// /dev/infiniband/rdma_cm. The communication manager is not in this library, which every process
// has, but in the one that libibverbs loads for our devices; librdmacm lists them before it opens
// this node, so it is there by then and has said who answers (rdma_cm_provider.h).
//
// A program's descriptor is the end of a socket pair that is readable while there are events. It is
// known by its inode, as long as it is open.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "interposed.h"

namespace uroce::kernel {

// The commands of <rdma/rdma_user_cm.h>, header included.
inline constexpr std::size_t kRdmaCmCommandBytesMin = 12;
inline constexpr std::size_t kRdmaCmCommandBytesMax = 304;

bool rdma_cm_was_opened();
// A descriptor, or -1 and errno: ENODEV where nobody answers.
int rdma_cm_open(int flags);
bool rdma_cm_is_stand_in(const Stat& status);
bool rdma_cm_is_command(const void* command, std::size_t bytes);
ssize_t rdma_cm_execute(int descriptor, const Stat& status, const void* command, std::size_t bytes);

// librdmacm demands that it is a character device.
void rdma_cm_disguise(Stat& status);
void rdma_cm_disguise(Stat64& status);

}  // namespace uroce::kernel
