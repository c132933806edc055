// SPDX-License-Identifier: BSD-2-Clause
// Folders: listing, matching, watching, going there.
#include <dirent.h>

#include "interposed.h"
#include "tree.h"

namespace uroce::kernel {

UROCE_INTERPOSE(opendir, DIR*, (const char* path)) {
  return redirect(path, [](const char* place) { return next().opendir(place); });
}

namespace {

// The tree's entry for a node is a plain file, and says so in listings; programs that care (find
// -type c) are made to look at the node itself. Any file system may leave the type open.
template <typename Entry>
Entry* hide_type(Entry* entry) {
  if (entry != nullptr && entry->d_type == DT_REG && tree_is_set() &&
      (entry->d_name[0] == 'u' || entry->d_name[0] == 'r') && mentions_rdma(entry->d_name)) {
    entry->d_type = DT_UNKNOWN;
  }
  return entry;
}

}  // namespace

UROCE_INTERPOSE(readdir, dirent*, (DIR * folder)) { return hide_type(next().readdir(folder)); }

UROCE_INTERPOSE(readdir64, dirent64*, (DIR * folder)) {
  return hide_type(next().readdir64(folder));
}

UROCE_INTERPOSE(scandir, int,
                (const char* path, dirent*** entries, Filter filter, Compare compare)) {
  return redirect(
      path, [=](const char* place) { return next().scandir(place, entries, filter, compare); });
}

UROCE_INTERPOSE(scandir64, int,
                (const char* path, dirent64*** entries, Filter64 filter, Compare64 compare)) {
  return redirect(
      path, [=](const char* place) { return next().scandir64(place, entries, filter, compare); });
}

UROCE_INTERPOSE(scandirat, int,
                (int folder, const char* path, dirent*** entries, Filter filter, Compare compare)) {
  return redirect(folder, path, [=](const char* place) {
    return next().scandirat(folder, place, entries, filter, compare);
  });
}

UROCE_INTERPOSE(scandirat64, int,
                (int folder, const char* path, dirent64*** entries, Filter64 filter,
                 Compare64 compare)) {
  return redirect(folder, path, [=](const char* place) {
    return next().scandirat64(folder, place, entries, filter, compare);
  });
}

UROCE_INTERPOSE(chdir, int, (const char* path)) {
  return redirect(path, [](const char* place) { return next().chdir(place); });
}

UROCE_INTERPOSE(inotify_add_watch, int, (int descriptor, const char* path, uint32_t mask)) {
  return redirect(
      path, [=](const char* place) { return next().inotify_add_watch(descriptor, place, mask); });
}

namespace {

// glob looks at folders with functions of libc's own unless the caller brings some: bring ours, and
// the paths that it returns are those that the program asked for. The caller's fields are put back.
template <typename Glob, typename Directory, typename Status, typename Next>
int glob_through_us(const char* pattern, int flags, GlobError error, Glob* result,
                    Directory read_folder, Status status, Status link_status, Next next_glob) {
  const Glob saved = *result;
  result->gl_opendir = [](const char* path) -> void* { return uroce_opendir(path); };
  result->gl_closedir = [](void* folder) { closedir(static_cast<DIR*>(folder)); };
  result->gl_readdir = read_folder;
  result->gl_stat = status;
  result->gl_lstat = link_status;
  const int outcome = next_glob(pattern, flags | GLOB_ALTDIRFUNC, error, result);
  result->gl_flags &= ~GLOB_ALTDIRFUNC;
  result->gl_opendir = saved.gl_opendir;
  result->gl_closedir = saved.gl_closedir;
  result->gl_readdir = saved.gl_readdir;
  result->gl_stat = saved.gl_stat;
  result->gl_lstat = saved.gl_lstat;
  return outcome;
}

bool glob_needs_us(const char* pattern, int flags) {
  return may_be_in_tree(pattern) && (flags & GLOB_ALTDIRFUNC) == 0;
}

}  // namespace

UROCE_INTERPOSE(glob, int, (const char* pattern, int flags, GlobError error, glob_t* result)) {
  if (!glob_needs_us(pattern, flags)) return next().glob(pattern, flags, error, result);
  return glob_through_us(
      pattern, flags, error, result,
      [](void* folder) { return readdir(static_cast<DIR*>(folder)); }, ::stat, ::lstat,
      next().glob);
}

UROCE_INTERPOSE(glob64, int, (const char* pattern, int flags, GlobError error, glob64_t* result)) {
  if (!glob_needs_us(pattern, flags)) return next().glob64(pattern, flags, error, result);
  return glob_through_us(
      pattern, flags, error, result,
      [](void* folder) { return readdir64(static_cast<DIR*>(folder)); }, ::stat64, ::lstat64,
      next().glob64);
}

}  // namespace uroce::kernel
