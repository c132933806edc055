// SPDX-License-Identifier: BSD-2-Clause
// Questions about names: where a link leads, what a path is called in full. The answer to the
// second never shows the tree: a program compares it with paths that it knows from sysfs.
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "interposed.h"
#include "tree.h"

namespace uroce::kernel {

UROCE_INTERPOSE(readlink, ssize_t, (const char* path, char* text, size_t bytes)) {
  return redirect(path, [=](const char* place) { return next().readlink(place, text, bytes); });
}

UROCE_INTERPOSE(readlinkat, ssize_t, (int folder, const char* path, char* text, size_t bytes)) {
  return redirect(folder, path,
                  [=](const char* place) { return next().readlinkat(folder, place, text, bytes); });
}

UROCE_INTERPOSE(__readlink_chk, ssize_t,
                (const char* path, char* text, size_t bytes, size_t text_bytes)) {
  return redirect(path, [=](const char* place) {
    return next().__readlink_chk(place, text, bytes, text_bytes);
  });
}

UROCE_INTERPOSE(__readlinkat_chk, ssize_t,
                (int folder, const char* path, char* text, size_t bytes, size_t text_bytes)) {
  return redirect(folder, path, [=](const char* place) {
    return next().__readlinkat_chk(folder, place, text, bytes, text_bytes);
  });
}

namespace {

// Takes the tree off the front of a full name; what a link led out of the tree to stays.
char* without_tree(char* name) {
  const std::size_t tree_bytes = strlen(tree_path);
  if (name != nullptr && strncmp(name, tree_path, tree_bytes) == 0 && name[tree_bytes] == '/') {
    memmove(name, name + tree_bytes, strlen(name + tree_bytes) + 1);
  }
  return name;
}

// `call(path, buffer)` needs room for the tree's name as well, which the caller's buffer, at
// PATH_MAX bytes, has: find_in_tree makes no longer ones.
template <typename Call>
char* full_name(const char* path, Call call) {
  char place[PATH_MAX];
  if (!may_be_in_tree(path) || !find_in_tree(AT_FDCWD, path, Want::kPlace, place)) {
    return call(path);
  }
  return without_tree(call(place));
}

}  // namespace

UROCE_INTERPOSE(realpath, char*, (const char* path, char* name)) {
  return full_name(path, [=](const char* place) { return next().realpath(place, name); });
}

UROCE_INTERPOSE(__realpath_chk, char*, (const char* path, char* name, size_t name_bytes)) {
  return full_name(
      path, [=](const char* place) { return next().__realpath_chk(place, name, name_bytes); });
}

UROCE_INTERPOSE(canonicalize_file_name, char*, (const char* path)) {
  return full_name(path, [](const char* place) { return next().canonicalize_file_name(place); });
}

}  // namespace uroce::kernel
