// SPDX-License-Identifier: BSD-2-Clause
// What a program can ask of /dev/infiniband/uverbsN here: descriptors for events.
//
// Stock libibverbs sends everything else through the provider, or reads it from sysfs after the
// ioctl has failed; ibv_create_comp_channel alone writes its command to the descriptor of the
// device, and ibv_import_device asks for asynchronous events by ioctl. Both expect a descriptor in
// the answer. That one is a pipe, open for reading and writing through a single descriptor: the
// provider writes its events (ib_uverbs_comp_event_desc, ib_uverbs_async_event_desc) into it, the
// program reads, polls and closes it as it would the kernel's.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "interposed.h"

namespace uroce::kernel {

// Of the one command.
inline constexpr std::size_t kUverbsCommandBytes = 16;

bool uverbs_is_stand_in(const Stat& status);
bool uverbs_is_command(const void* command, std::size_t bytes);
ssize_t uverbs_execute(int descriptor, const Stat& status, const void* command, std::size_t bytes);

// RDMA_VERBS_IOCTL with this argument is UVERBS_METHOD_ASYNC_EVENT_ALLOC. Its answer: 0, or -1 and
// errno.
bool uverbs_is_async_event_alloc(const void* argument);
int uverbs_alloc_async_event(void* argument);

}  // namespace uroce::kernel
