// SPDX-License-Identifier: BSD-2-Clause
#include "engine/short_slices.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uroce::engine {
namespace {

constexpr unsigned kShortestSliceNs = 100'000;  // that the kernel gives

}  // namespace

void ask_for_short_slices() {
  sched_attr attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.sched_policy != SCHED_NORMAL) return;
  attributes.sched_runtime = kShortestSliceNs;
  // Where the kernel refuses, all is as it was.
  static_cast<void>(syscall(SYS_sched_setattr, 0, &attributes, 0));
}

}  // namespace uroce::engine
