// SPDX-License-Identifier: BSD-2-Clause
// Every libc function that this library stands in front of, in one table: name, result, parameters.
//
// glibc's own callers do not go through the symbol table (its fopen calls an internal open), so
// each function that takes a path is here in its own right: also the forms with 64 in the name, the
// __x*stat forms of programs built before glibc 2.33, and the _2 and _chk forms of _FORTIFY_SOURCE.
// docs/KERNEL_INTERFACE.md lists what is left out and why.
//
// A definition is written with UROCE_INTERPOSE(name, result, parameters) { ... } and reaches the
// function that would have been called without us as next().name(...). The asm label gives the
// C++ function its libc name without a clash with libc's own, differently attributed declaration.
#pragma once

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace uroce::kernel {

static_assert(sizeof(long) == 8, "32-bit ABIs have more forms (time64) than this table knows");

// `struct stat` cannot be named in a class that has a member `stat`.
using Stat = struct stat;
using Stat64 = struct stat64;
using Statx = struct statx;
using Statfs = struct statfs;
using Statfs64 = struct statfs64;
using Statvfs = struct statvfs;
using Statvfs64 = struct statvfs64;
using Filter = int (*)(const dirent*);
using Filter64 = int (*)(const dirent64*);
using Compare = int (*)(const dirent**, const dirent**);
using Compare64 = int (*)(const dirent64**, const dirent64**);
using GlobError = int (*)(const char*, int);

// clang-format off
#define UROCE_INTERPOSED(FUNCTION)                                                                 \
  FUNCTION(open, int, (const char*, int, ...))                                                     \
  FUNCTION(open64, int, (const char*, int, ...))                                                   \
  FUNCTION(openat, int, (int, const char*, int, ...))                                              \
  FUNCTION(openat64, int, (int, const char*, int, ...))                                            \
  FUNCTION(__open_2, int, (const char*, int))                                                      \
  FUNCTION(__open64_2, int, (const char*, int))                                                    \
  FUNCTION(__openat_2, int, (int, const char*, int))                                               \
  FUNCTION(__openat64_2, int, (int, const char*, int))                                             \
  FUNCTION(creat, int, (const char*, mode_t))                                                      \
  FUNCTION(creat64, int, (const char*, mode_t))                                                    \
  FUNCTION(fopen, FILE*, (const char*, const char*))                                               \
  FUNCTION(fopen64, FILE*, (const char*, const char*))                                             \
  FUNCTION(freopen, FILE*, (const char*, const char*, FILE*))                                      \
  FUNCTION(freopen64, FILE*, (const char*, const char*, FILE*))                                    \
  FUNCTION(fstat, int, (int, Stat*))                                                               \
  FUNCTION(fstat64, int, (int, Stat64*))                                                           \
  FUNCTION(__fxstat, int, (int, int, Stat*))                                                       \
  FUNCTION(__fxstat64, int, (int, int, Stat64*))                                                   \
  FUNCTION(stat, int, (const char*, Stat*))                                                        \
  FUNCTION(stat64, int, (const char*, Stat64*))                                                    \
  FUNCTION(lstat, int, (const char*, Stat*))                                                       \
  FUNCTION(lstat64, int, (const char*, Stat64*))                                                   \
  FUNCTION(fstatat, int, (int, const char*, Stat*, int))                                           \
  FUNCTION(fstatat64, int, (int, const char*, Stat64*, int))                                       \
  FUNCTION(__xstat, int, (int, const char*, Stat*))                                                \
  FUNCTION(__xstat64, int, (int, const char*, Stat64*))                                            \
  FUNCTION(__lxstat, int, (int, const char*, Stat*))                                               \
  FUNCTION(__lxstat64, int, (int, const char*, Stat64*))                                           \
  FUNCTION(__fxstatat, int, (int, int, const char*, Stat*, int))                                   \
  FUNCTION(__fxstatat64, int, (int, int, const char*, Stat64*, int))                               \
  FUNCTION(statx, int, (int, const char*, int, unsigned, Statx*))                                  \
  FUNCTION(statfs, int, (const char*, Statfs*))                                                    \
  FUNCTION(statfs64, int, (const char*, Statfs64*))                                                \
  FUNCTION(statvfs, int, (const char*, Statvfs*))                                                  \
  FUNCTION(statvfs64, int, (const char*, Statvfs64*))                                              \
  FUNCTION(access, int, (const char*, int))                                                        \
  FUNCTION(eaccess, int, (const char*, int))                                                       \
  FUNCTION(euidaccess, int, (const char*, int))                                                    \
  FUNCTION(faccessat, int, (int, const char*, int, int))                                           \
  FUNCTION(getxattr, ssize_t, (const char*, const char*, void*, size_t))                           \
  FUNCTION(lgetxattr, ssize_t, (const char*, const char*, void*, size_t))                          \
  FUNCTION(listxattr, ssize_t, (const char*, char*, size_t))                                       \
  FUNCTION(llistxattr, ssize_t, (const char*, char*, size_t))                                      \
  FUNCTION(opendir, DIR*, (const char*))                                                           \
  FUNCTION(readdir, dirent*, (DIR*))                                                               \
  FUNCTION(readdir64, dirent64*, (DIR*))                                                           \
  FUNCTION(scandir, int, (const char*, dirent***, Filter, Compare))                                \
  FUNCTION(scandir64, int, (const char*, dirent64***, Filter64, Compare64))                        \
  FUNCTION(scandirat, int, (int, const char*, dirent***, Filter, Compare))                         \
  FUNCTION(scandirat64, int, (int, const char*, dirent64***, Filter64, Compare64))                 \
  FUNCTION(glob, int, (const char*, int, GlobError, glob_t*))                                      \
  FUNCTION(glob64, int, (const char*, int, GlobError, glob64_t*))                                  \
  FUNCTION(chdir, int, (const char*))                                                              \
  FUNCTION(inotify_add_watch, int, (int, const char*, uint32_t))                                   \
  FUNCTION(readlink, ssize_t, (const char*, char*, size_t))                                        \
  FUNCTION(readlinkat, ssize_t, (int, const char*, char*, size_t))                                 \
  FUNCTION(__readlink_chk, ssize_t, (const char*, char*, size_t, size_t))                          \
  FUNCTION(__readlinkat_chk, ssize_t, (int, const char*, char*, size_t, size_t))                   \
  FUNCTION(realpath, char*, (const char*, char*))                                                  \
  FUNCTION(__realpath_chk, char*, (const char*, char*, size_t))                                    \
  FUNCTION(canonicalize_file_name, char*, (const char*))                                           \
  FUNCTION(socket, int, (int, int, int))                                                           \
  FUNCTION(ioctl, int, (int, unsigned long, ...))                                                  \
  FUNCTION(write, ssize_t, (int, const void*, size_t))
// clang-format on

#define UROCE_INTERPOSE(name, result, parameters)                                          \
  extern "C" [[gnu::visibility("default")]] result uroce_##name parameters __asm__(#name); \
  result uroce_##name parameters

struct NextFunctions {
#define UROCE_MEMBER(name, result, parameters) result(*name) parameters;
  UROCE_INTERPOSED(UROCE_MEMBER)
#undef UROCE_MEMBER
};

extern NextFunctions next_functions;
[[gnu::cold]] void prepare();

// What the program would have called without this library: the next definition in search order,
// usually libc's, a sanitizer's if its runtime is behind us. `write` is the last to be found.
inline const NextFunctions& next() {
  if (next_functions.write == nullptr) [[unlikely]]
    prepare();
  return next_functions;
}

}  // namespace uroce::kernel
