// SPDX-License-Identifier: BSD-2-Clause
// The one request to a device that is answered. Every other ioctl, of this device too, is the
// kernel's: /dev/null says ENOTTY, which makes libibverbs fall back to write and sysfs.
#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "interposed.h"
#include "node.h"
#include "uverbs.h"

namespace uroce::kernel {

namespace {

bool is_on_a_node(int descriptor) {
  if (!node_was_seen.load(std::memory_order_relaxed)) return false;
  const int saved_errno = errno;
  Stat status;
  const bool is_node = next().fstat(descriptor, &status) == 0 && uverbs_is_stand_in(status);
  errno = saved_errno;
  return is_node;
}

}  // namespace

UROCE_INTERPOSE(ioctl, int, (int descriptor, unsigned long request, ...)) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == RDMA_VERBS_IOCTL && argument != nullptr && is_on_a_node(descriptor) &&
      uverbs_is_async_event_alloc(argument)) [[unlikely]] {
    return uverbs_alloc_async_event(argument);
  }
  return next().ioctl(descriptor, request, argument);
}

}  // namespace uroce::kernel
