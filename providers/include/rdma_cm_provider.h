// SPDX-License-Identifier: BSD-2-Clause
// How the two halves of /dev/infiniband/rdma_cm find each other in a process: the preloaded library
// has the node, and the plug-in of libibverbs has who answers. The preloaded library exports a
// function by this name, and the plug-in, when it is loaded, calls it.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace uroce {

struct RdmaCmProvider {
  // A descriptor, the end of a pipe or socket pair, or -1 and errno.
  int (*open)();
  // As write(2) of one whole command to that descriptor.
  ssize_t (*execute)(int descriptor, dev_t device, ino_t inode, const void* command,
                     std::size_t bytes);
};

inline constexpr const char* kSetRdmaCmProvider = "uroce_set_rdma_cm_provider";
// Returns what to call when the program has closed such a descriptor.
using ForgetRdmaCm = void (*)(ino_t inode);
using SetRdmaCmProvider = ForgetRdmaCm (*)(const RdmaCmProvider* provider);

}  // namespace uroce
