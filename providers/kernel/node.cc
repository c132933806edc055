// SPDX-License-Identifier: BSD-2-Clause
#include "node.h"

#include <errno.h>
#include <string.h>

#include "rdma_cm.h"
#include "tree.h"
#include "uverbs.h"

namespace uroce::kernel {

constinit std::atomic<bool> node_was_seen = false;

namespace {

constexpr NodeKind kNodeKinds[] = {
    {"uverbs", "/dev/null", uverbs_is_stand_in, uverbs_is_command, uverbs_execute},
    {"rdma_cm", "/dev/null", rdma_cm_is_stand_in, rdma_cm_is_command, rdma_cm_execute,
     rdma_cm_open},
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

bool open_node(int folder, const char* path, int flags, int& descriptor) {
  char place[PATH_MAX];
  if (!may_be_in_tree(path) || !find_in_tree(folder, path, Want::kPlace, place)) return false;
  std::string_view plain(place);
  if (!plain.starts_with(tree_path)) return false;
  plain.remove_prefix(strlen(tree_path));
  if (!is_in_node_folder(plain)) return false;
  const NodeKind* kind = find_node_kind(plain);
  Stat status;
  if (kind == nullptr || kind->open == nullptr || next().lstat(place, &status) != 0 ||
      !S_ISREG(status.st_mode)) {
    return false;
  }
  descriptor = kind->open(flags);
  return true;
}

const NodeKind* find_command(int descriptor, const void* command, std::size_t bytes, Stat& status) {
  const int saved_errno = errno;
  const bool is_open = next().fstat(descriptor, &status) == 0;
  errno = saved_errno;
  if (!is_open) return nullptr;
  for (const NodeKind& kind : kNodeKinds) {
    if (kind.is_stand_in(status) && kind.is_command(command, bytes)) return &kind;
  }
  return nullptr;
}

}  // namespace uroce::kernel
