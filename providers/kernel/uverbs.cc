// SPDX-License-Identifier: BSD-2-Clause
#include "uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string_view>

#include "descriptor_path.h"
#include "interposed.h"
#include "tree.h"

namespace uroce::kernel {

namespace {

struct CreateCompChannel {
  ib_uverbs_cmd_hdr header;
  ib_uverbs_create_comp_channel body;
};
using CreateCompChannelAnswer = ib_uverbs_create_comp_channel_resp;

constexpr ib_uverbs_cmd_hdr kCreateCompChannel{
    .command = IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL,
    .in_words = sizeof(CreateCompChannel) / 4,
    .out_words = sizeof(CreateCompChannelAnswer) / 4,
};
static_assert(sizeof(CreateCompChannel) == kUverbsCommandBytes);

int open_pipe_both_ways() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  char path[kDescriptorPathBytes];
  write_descriptor_path(ends[0], path);
  const int channel = next().open(path, O_RDWR | O_CLOEXEC);
  close_keeping_errno(ends[0]);
  close_keeping_errno(ends[1]);
  return channel;
}

// Where /proc is not mounted. The name is the thread's own, and free again at once.
int open_fifo_both_ways() {
  char path[PATH_MAX];
  constexpr std::string_view kName = "/event-channel.";
  const std::size_t bytes = strlen(tree_path);
  memcpy(path, tree_path, bytes);
  memcpy(path + bytes, kName.data(), kName.size());
  write_decimal(static_cast<std::uint64_t>(gettid()), path + bytes + kName.size());
  if (mkfifo(path, 0600) != 0) return -1;
  const int channel = next().open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  const int saved_errno = errno;
  unlink(path);
  errno = saved_errno;
  return channel;
}

// A descriptor, or -1 and errno; which is kept otherwise.
int open_channel() {
  const int saved_errno = errno;
  int channel = open_pipe_both_ways();
  if (channel < 0 && errno == ENOENT) channel = open_fifo_both_ways();
  if (channel >= 0) errno = saved_errno;
  return channel;
}

}  // namespace

bool uverbs_is_stand_in(const Stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

bool uverbs_is_command(const void* command, std::size_t bytes) {
  return bytes == sizeof(CreateCompChannel) &&
         memcmp(command, &kCreateCompChannel, sizeof kCreateCompChannel) == 0;
}

ssize_t uverbs_execute(int /*descriptor*/, const Stat& /*status*/, const void* command,
                       std::size_t bytes) {
  CreateCompChannel request;
  memcpy(&request, command, sizeof request);
  const int channel = open_channel();
  if (channel < 0) return -1;
  const CreateCompChannelAnswer answer{.fd = static_cast<__u32>(channel)};
  memcpy(reinterpret_cast<void*>(request.body.response), &answer, sizeof answer);
  return static_cast<ssize_t>(bytes);
}

bool uverbs_is_async_event_alloc(const void* argument) {
  ib_uverbs_ioctl_hdr header;
  memcpy(&header, argument, sizeof header);
  return header.length == sizeof header + sizeof(ib_uverbs_attr) && header.num_attrs == 1 &&
         header.object_id == UVERBS_OBJECT_ASYNC_EVENT &&
         header.method_id == UVERBS_METHOD_ASYNC_EVENT_ALLOC;
}

int uverbs_alloc_async_event(void* argument) {
  const int channel = open_channel();
  if (channel < 0) return -1;
  static_cast<ib_uverbs_ioctl_hdr*>(argument)->attrs[0].data_s64 = channel;
  return 0;
}

}  // namespace uroce::kernel
