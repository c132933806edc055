// SPDX-License-Identifier: BSD-2-Clause
#include "node.h"

#include <errno.h>

#include "uverbs.h"

namespace uroce::kernel {

constinit std::atomic<bool> node_was_seen = false;

namespace {

constexpr NodeKind kNodeKinds[] = {
    {"uverbs", "/dev/null", uverbs_is_stand_in, uverbs_is_command, uverbs_execute},
};

}  // namespace

bool is_in_node_folder(std::string_view path) {
  return path.starts_with(kNodeFolder) && path.size() > kNodeFolder.size() + 1;
}

const NodeKind* find_node_kind(std::string_view path) {
  path.remove_prefix(kNodeFolder.size() + 1);
  for (const NodeKind& kind : kNodeKinds) {
    if (path.starts_with(kind.name)) return &kind;
  }
  return nullptr;
}

const NodeKind* find_command(int descriptor, const void* command, std::size_t bytes) {
  const int saved_errno = errno;
  const NodeKind* found = nullptr;
  for (const NodeKind& kind : kNodeKinds) {
    if (kind.is_stand_in(descriptor) && kind.is_command(command, bytes)) found = &kind;
  }
  errno = saved_errno;
  return found;
}

}  // namespace uroce::kernel
