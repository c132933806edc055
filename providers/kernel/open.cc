// SPDX-License-Identifier: BSD-2-Clause
// Opening: every form that turns a path into a descriptor or a stream.
#include <fcntl.h>
#include <stdarg.h>

#include "counters.h"
#include "interposed.h"
#include "node.h"
#include "tree.h"

namespace uroce::kernel {

namespace {

// The mode is there only if the flags say so; libc's open reads it under the same condition.
bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

mode_t take_mode(int flags, va_list arguments) {
  return has_mode(flags) ? static_cast<mode_t>(va_arg(arguments, unsigned)) : 0;
}

// A node that opens itself, a counter, or else whatever open(place) opens.
template <typename Open>
int open_at(int folder, const char* path, int flags, Open open) {
  int descriptor = -1;
  if (open_node(folder, path, flags, descriptor) || open_counter(folder, path, flags, descriptor))
      [[unlikely]]
    return descriptor;
  return redirect(folder, path, open);
}

}  // namespace

UROCE_INTERPOSE(open, int, (const char* path, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = take_mode(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags,
                 [=](const char* place) { return next().open(place, flags, mode); });
}

UROCE_INTERPOSE(open64, int, (const char* path, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = take_mode(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags,
                 [=](const char* place) { return next().open64(place, flags, mode); });
}

UROCE_INTERPOSE(openat, int, (int folder, const char* path, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = take_mode(flags, arguments);
  va_end(arguments);
  return open_at(folder, path, flags,
                 [=](const char* place) { return next().openat(folder, place, flags, mode); });
}

UROCE_INTERPOSE(openat64, int, (int folder, const char* path, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = take_mode(flags, arguments);
  va_end(arguments);
  return open_at(folder, path, flags,
                 [=](const char* place) { return next().openat64(folder, place, flags, mode); });
}

UROCE_INTERPOSE(__open_2, int, (const char* path, int flags)) {
  return open_at(AT_FDCWD, path, flags,
                 [=](const char* place) { return next().__open_2(place, flags); });
}

UROCE_INTERPOSE(__open64_2, int, (const char* path, int flags)) {
  return open_at(AT_FDCWD, path, flags,
                 [=](const char* place) { return next().__open64_2(place, flags); });
}

UROCE_INTERPOSE(__openat_2, int, (int folder, const char* path, int flags)) {
  return open_at(folder, path, flags,
                 [=](const char* place) { return next().__openat_2(folder, place, flags); });
}

UROCE_INTERPOSE(__openat64_2, int, (int folder, const char* path, int flags)) {
  return open_at(folder, path, flags,
                 [=](const char* place) { return next().__openat64_2(folder, place, flags); });
}

UROCE_INTERPOSE(creat, int, (const char* path, mode_t mode)) {
  return redirect(path, [=](const char* place) { return next().creat(place, mode); });
}

UROCE_INTERPOSE(creat64, int, (const char* path, mode_t mode)) {
  return redirect(path, [=](const char* place) { return next().creat64(place, mode); });
}

UROCE_INTERPOSE(fopen, FILE*, (const char* path, const char* mode)) {
  return open_as_stream(path, [=](const char* place) { return next().fopen(place, mode); });
}

UROCE_INTERPOSE(fopen64, FILE*, (const char* path, const char* mode)) {
  return open_as_stream(path, [=](const char* place) { return next().fopen64(place, mode); });
}

UROCE_INTERPOSE(freopen, FILE*, (const char* path, const char* mode, FILE* stream)) {
  return open_as_stream(path,
                        [=](const char* place) { return next().freopen(place, mode, stream); });
}

UROCE_INTERPOSE(freopen64, FILE*, (const char* path, const char* mode, FILE* stream)) {
  return open_as_stream(path,
                        [=](const char* place) { return next().freopen64(place, mode, stream); });
}

}  // namespace uroce::kernel
