// SPDX-License-Identifier: BSD-2-Clause
// Which paths the stand-in answers, and from where.
//
// $UROCE_TREE names a folder, absolute and without symbolic links in it, that `uroce run` has
// filled: `sys/class/infiniband/...` and its siblings as sysfs has them, and in `dev/infiniband/`
// one entry per node. A path at or below a root of kRoots that exists in the tree is answered
// from there; any other path is the real one. So devices that the host really has stay usable by
// name, and they are in the listings, which come from the tree alone, when `uroce run` has put
// symbolic links to them there. A node is emulated if its entry in the tree is a plain file and
// node.h has its kind, otherwise a plain file there is not answered at all; a symbolic link is
// followed, to the real node.
//
// Paths are compared after removing `//`, `.` and `..` by text; relative ones are completed from
// the folder they start at, which may lie in the tree (its descriptor was opened through us).
#pragma once

#include <fcntl.h>
#include <limits.h>

#include "interposed.h"

namespace uroce::kernel {

// What a path becomes: a node's stand-in for those who use it, its place in the tree for those
// who ask for names; and that, named without needless parts, for those who compare names.
enum class Want { kContent, kPlace, kPlainPlace };

// The folder, or an empty string when the library has nothing to do; set by prepare().
extern char tree_path[PATH_MAX / 2];
void find_tree();
inline bool tree_is_set() {
  next();
  return tree_path[0] != '\0';
}

// A look at the text alone, so that other paths cost next to nothing.
bool mentions_rdma(const char* path);
inline bool may_be_in_tree(const char* path) {
  return tree_is_set() && path != nullptr && mentions_rdma(path);
}

// Writes the path to use instead of `path` (relative to `folder`) to `place`, or returns false to
// leave it alone. Keeps errno; calls only what a signal handler may call.
bool find_in_tree(int folder, const char* path, Want want, char (&place)[PATH_MAX]);

template <typename Call>
[[gnu::noinline, gnu::cold]] auto call_in_tree(int folder, const char* path, Call call) {
  char place[PATH_MAX];
  return call(find_in_tree(folder, path, Want::kContent, place) ? place : path);
}

// call(path), with the path from the tree where the tree has it. Functions that also take a folder
// can keep theirs: a path from the tree is absolute.
template <typename Call>
auto redirect(int folder, const char* path, Call call) {
  if (may_be_in_tree(path)) [[unlikely]]
    return call_in_tree(folder, path, call);
  return call(path);
}

template <typename Call>
auto redirect(const char* path, Call call) {
  return redirect(AT_FDCWD, path, call);
}

}  // namespace uroce::kernel
