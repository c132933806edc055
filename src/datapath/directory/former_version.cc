// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/directory/former_version.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

namespace uroce::datapath {
namespace {

constexpr const char* kDirectoryName = "directory";

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;  // a length of 0: to its end and beyond
}

bool is_same_file(int folder, int directory) {
  struct stat named {
  }, open{};
  return ::fstatat(folder, kDirectoryName, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(directory, &open) == 0 && named.st_dev == open.st_dev &&
         named.st_ino == open.st_ino;
}

enum class Locked { kYes, kByAnotherClearer, kByAUser };

// A user's lock is one byte long.
Locked try_lock(int directory) {
  struct flock lock = whole_file();
  if (::fcntl(directory, F_SETLK, &lock) == 0) return Locked::kYes;
  lock = whole_file();
  if (::fcntl(directory, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK || lock.l_len == 0) {
    return Locked::kByAnotherClearer;
  }
  return Locked::kByAUser;
}

// The control sockets, and what the members of a reuseport group share (udp-PORT). Device trees
// are not the engines'.
bool is_of_engines(int folder, const char* name) {
  struct stat facts {};
  if (::fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return S_ISSOCK(facts.st_mode) ||
         (S_ISREG(facts.st_mode) && std::string_view(name).starts_with("udp-"));
}

bool remove_files(int folder) {
  const std::string path = "/proc/self/fd/" + std::to_string(folder);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(path.c_str()), ::closedir);
  if (entries == nullptr) return false;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (is_of_engines(folder, entry->d_name)) ::unlinkat(folder, entry->d_name, 0);
  }
  return ::unlinkat(folder, kDirectoryName, 0) == 0;
}

}  // namespace

Clearance clear_former_version(int folder, int directory) {
  constexpr int kAttempts = 1'000;  // a millisecond apart
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Locked locked = try_lock(directory);
    if (!is_same_file(folder, directory)) return Clearance::kCleared;
    switch (locked) {
      case Locked::kYes:
        return remove_files(folder) ? Clearance::kCleared : Clearance::kFailed;
      case Locked::kByAUser:
        return Clearance::kInUse;
      case Locked::kByAnotherClearer:
        break;
    }
    ::poll(nullptr, 0, 1);
  }
  return Clearance::kInUse;
}

}  // namespace uroce::datapath
