// SPDX-License-Identifier: BSD-2-Clause
// RDMA devices that the kernel has itself. The device tree links to them, so that a program sees
// them next to ours: libibverbs lists what it finds in sysfs and nothing else, and its provider for
// such a device (mlx5's, rxe's) reads the device's own files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uroce::host {

struct KernelRdma {
  std::string root;                // before every path below; empty but in tests
  std::vector<std::string> paths;  // "/sys/class/infiniband/mlx5_0", "/dev/infiniband/uverbs0" ...
  std::uint32_t first_free_uverbs = 0;  // this number and all higher ones are nobody's
};

// Of a host whose files are below `root`. What the tree of a `uroce run` around this one shows as
// uroce's is left out.
[[nodiscard]] KernelRdma read_kernel_rdma(const std::string& root = {});

}  // namespace uroce::host
