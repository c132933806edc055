// SPDX-License-Identifier: BSD-2-Clause
// Whether this thread has a capability (man 7 capabilities). What the kernel does not say is no.
#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace uroce::posix {

inline bool has_capability(int number) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return false;
  const auto index = static_cast<unsigned>(number);
  return (sets[index / 32].effective >> (index % 32) & 1) != 0;
}

}  // namespace uroce::posix
