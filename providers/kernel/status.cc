// SPDX-License-Identifier: BSD-2-Clause
// Asking about a path: type, rights, file system, extended attributes. A node shows what its
// stand-in is, a character device 1:3 that everybody may read and write; so does a descriptor of
// rdma_cm, which is a pipe.
#include "interposed.h"
#include "rdma_cm.h"
#include "tree.h"

namespace uroce::kernel {

UROCE_INTERPOSE(stat, int, (const char* path, Stat* status)) {
  return redirect(path, [=](const char* place) { return next().stat(place, status); });
}

UROCE_INTERPOSE(stat64, int, (const char* path, Stat64* status)) {
  return redirect(path, [=](const char* place) { return next().stat64(place, status); });
}

UROCE_INTERPOSE(fstat, int, (int descriptor, Stat* status)) {
  const int result = next().fstat(descriptor, status);
  if (result == 0) rdma_cm_disguise(*status);
  return result;
}

UROCE_INTERPOSE(fstat64, int, (int descriptor, Stat64* status)) {
  const int result = next().fstat64(descriptor, status);
  if (result == 0) rdma_cm_disguise(*status);
  return result;
}

UROCE_INTERPOSE(__fxstat, int, (int version, int descriptor, Stat* status)) {
  const int result = next().__fxstat(version, descriptor, status);
  if (result == 0) rdma_cm_disguise(*status);
  return result;
}

UROCE_INTERPOSE(__fxstat64, int, (int version, int descriptor, Stat64* status)) {
  const int result = next().__fxstat64(version, descriptor, status);
  if (result == 0) rdma_cm_disguise(*status);
  return result;
}

UROCE_INTERPOSE(lstat, int, (const char* path, Stat* status)) {
  return redirect(path, [=](const char* place) { return next().lstat(place, status); });
}

UROCE_INTERPOSE(lstat64, int, (const char* path, Stat64* status)) {
  return redirect(path, [=](const char* place) { return next().lstat64(place, status); });
}

UROCE_INTERPOSE(fstatat, int, (int folder, const char* path, Stat* status, int flags)) {
  return redirect(folder, path,
                  [=](const char* place) { return next().fstatat(folder, place, status, flags); });
}

UROCE_INTERPOSE(fstatat64, int, (int folder, const char* path, Stat64* status, int flags)) {
  return redirect(folder, path, [=](const char* place) {
    return next().fstatat64(folder, place, status, flags);
  });
}

UROCE_INTERPOSE(__xstat, int, (int version, const char* path, Stat* status)) {
  return redirect(path, [=](const char* place) { return next().__xstat(version, place, status); });
}

UROCE_INTERPOSE(__xstat64, int, (int version, const char* path, Stat64* status)) {
  return redirect(path,
                  [=](const char* place) { return next().__xstat64(version, place, status); });
}

UROCE_INTERPOSE(__lxstat, int, (int version, const char* path, Stat* status)) {
  return redirect(path, [=](const char* place) { return next().__lxstat(version, place, status); });
}

UROCE_INTERPOSE(__lxstat64, int, (int version, const char* path, Stat64* status)) {
  return redirect(path,
                  [=](const char* place) { return next().__lxstat64(version, place, status); });
}

UROCE_INTERPOSE(__fxstatat, int,
                (int version, int folder, const char* path, Stat* status, int flags)) {
  return redirect(folder, path, [=](const char* place) {
    return next().__fxstatat(version, folder, place, status, flags);
  });
}

UROCE_INTERPOSE(__fxstatat64, int,
                (int version, int folder, const char* path, Stat64* status, int flags)) {
  return redirect(folder, path, [=](const char* place) {
    return next().__fxstatat64(version, folder, place, status, flags);
  });
}

UROCE_INTERPOSE(statx, int,
                (int folder, const char* path, int flags, unsigned mask, Statx* status)) {
  return redirect(folder, path, [=](const char* place) {
    return next().statx(folder, place, flags, mask, status);
  });
}

UROCE_INTERPOSE(statfs, int, (const char* path, Statfs* status)) {
  return redirect(path, [=](const char* place) { return next().statfs(place, status); });
}

UROCE_INTERPOSE(statfs64, int, (const char* path, Statfs64* status)) {
  return redirect(path, [=](const char* place) { return next().statfs64(place, status); });
}

UROCE_INTERPOSE(statvfs, int, (const char* path, Statvfs* status)) {
  return redirect(path, [=](const char* place) { return next().statvfs(place, status); });
}

UROCE_INTERPOSE(statvfs64, int, (const char* path, Statvfs64* status)) {
  return redirect(path, [=](const char* place) { return next().statvfs64(place, status); });
}

UROCE_INTERPOSE(access, int, (const char* path, int mode)) {
  return redirect(path, [=](const char* place) { return next().access(place, mode); });
}

UROCE_INTERPOSE(eaccess, int, (const char* path, int mode)) {
  return redirect(path, [=](const char* place) { return next().eaccess(place, mode); });
}

UROCE_INTERPOSE(euidaccess, int, (const char* path, int mode)) {
  return redirect(path, [=](const char* place) { return next().euidaccess(place, mode); });
}

UROCE_INTERPOSE(faccessat, int, (int folder, const char* path, int mode, int flags)) {
  return redirect(folder, path,
                  [=](const char* place) { return next().faccessat(folder, place, mode, flags); });
}

UROCE_INTERPOSE(getxattr, ssize_t,
                (const char* path, const char* name, void* value, size_t bytes)) {
  return redirect(path,
                  [=](const char* place) { return next().getxattr(place, name, value, bytes); });
}

UROCE_INTERPOSE(lgetxattr, ssize_t,
                (const char* path, const char* name, void* value, size_t bytes)) {
  return redirect(path,
                  [=](const char* place) { return next().lgetxattr(place, name, value, bytes); });
}

UROCE_INTERPOSE(listxattr, ssize_t, (const char* path, char* list, size_t bytes)) {
  return redirect(path, [=](const char* place) { return next().listxattr(place, list, bytes); });
}

UROCE_INTERPOSE(llistxattr, ssize_t, (const char* path, char* list, size_t bytes)) {
  return redirect(path, [=](const char* place) { return next().llistxattr(place, list, bytes); });
}

}  // namespace uroce::kernel
