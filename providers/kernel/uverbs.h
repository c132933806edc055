// SPDX-License-Identifier: BSD-2-Clause
// What a write to /dev/infiniband/uverbsN does here: it creates completion channels.
//
// Stock libibverbs sends everything else through the provider, or reads it from sysfs after the
// ioctl has failed; ibv_create_comp_channel alone writes its command to the descriptor of the
// device, and expects a descriptor in the answer. That one is a pipe, open for reading and writing
// through a single descriptor: the provider writes an event of 8 bytes (ib_uverbs_comp_event_desc)
// into it, the program reads, polls and closes it as it would the kernel's.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace uroce::kernel {

// No command is shorter, and as long as there is one command, none is longer.
inline constexpr std::size_t kCommandBytesMin = 16;
inline constexpr std::size_t kCommandBytesMax = 16;

bool uverbs_is_stand_in(int descriptor);
bool uverbs_is_command(const void* command, std::size_t bytes);
ssize_t uverbs_execute(const void* command, std::size_t bytes);

}  // namespace uroce::kernel
