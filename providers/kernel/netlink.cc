// SPDX-License-Identifier: BSD-2-Clause
// RDMA netlink, which libibverbs and librdmacm ask before sysfs, is made to look absent: a kernel
// with ib_core answers it, possibly with an empty list, and the tree would never be read.
#include <errno.h>
#include <linux/netlink.h>

#include "interposed.h"
#include "tree.h"

namespace uroce::kernel {

UROCE_INTERPOSE(socket, int, (int domain, int type, int protocol)) {
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA && tree_is_set()) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  return next().socket(domain, type, protocol);
}

}  // namespace uroce::kernel
