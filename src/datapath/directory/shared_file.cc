// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/directory/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "datapath/directory/former_version.h"

namespace uroce::datapath {
namespace {

struct flock record(short type, std::uint32_t index) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = index;
  lock.l_len = 1;
  return lock;
}

std::string explain(const std::string& what, int code) { return what + ": " + std::strerror(code); }

// "/proc/self/fd/N/name": a path below an open folder, for calls that take nothing else.
std::string below(int folder, const char* name) {
  return "/proc/self/fd/" + std::to_string(folder) + "/" + name;
}

}  // namespace

// All SharedFiles of one process. A forked child sees a PID that is not its own and starts anew,
// without touching a mutex that some thread of the parent may have held.
struct SharedFile::Registry {
  const pid_t pid = ::getpid();
  std::mutex mutex;
  std::atomic<SharedFile*> first = nullptr;
};

SharedFile::Registry& SharedFile::registry() {
  static constinit std::atomic<Registry*> current = nullptr;  // never freed: threads outlive main
  Registry* found = current.load();
  while (found == nullptr || found->pid != ::getpid()) {
    auto* fresh = new Registry;
    Registry* const inherited = found;
    if (current.compare_exchange_strong(found, fresh)) {
      if (inherited != nullptr) {
        for (SharedFile* file = inherited->first; file != nullptr; file = file->next_) {
          file->close_inherited();
        }
      }
      return *fresh;
    }
    delete fresh;
  }
  return *found;
}

void SharedFile::abandon_in_child() { registry(); }

// The child's program may have closed the descriptors already and got the numbers for something
// else. The mapping stays: other objects in the child still point into it.
void SharedFile::close_inherited() const {
  struct stat facts {};
  if (::fstat(descriptor_, &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_) {
    ::close(descriptor_);
    ::close(folder_descriptor_);
  }
}

Result<SharedFile*> SharedFile::open(const std::string& folder) {
  Registry& all = registry();
  const std::lock_guard guard(all.mutex);
  return find_or_open(all, folder);
}

Result<SharedFile*> SharedFile::find_or_open(Registry& all, const std::string& folder) {
  struct stat facts {};
  const int path = ::open((folder + "/directory").c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW);
  if (path >= 0) {
    const bool known = ::fstat(path, &facts) == 0;
    ::close(path);  // O_PATH: no lock is lost
    for (SharedFile* file = all.first; known && file != nullptr; file = file->next_) {
      if (file->device_ == facts.st_dev && file->inode_ == facts.st_ino) return file;
    }
  }
  auto* file = new SharedFile(folder);
  std::string trouble = file->open_of_our_version();
  if (!trouble.empty()) {
    const int code = errno;
    file->close_descriptors();
    delete file;
    return Error{code == 0 ? EIO : code, std::move(trouble)};
  }
  file->next_ = all.first;
  all.first = file;
  return file;
}

std::string SharedFile::open_of_our_version() {
  for (;;) {
    std::string trouble = open_file();
    if (trouble.empty()) trouble = allocate();
    if (trouble.empty()) trouble = map();
    if (trouble.empty() || errno != EPROTO) return trouble;
    const Clearance clearance = clear_former_version(folder_descriptor_, descriptor_);
    if (clearance == Clearance::kFailed)
      return explain("removing " + folder_ + "/directory", errno);
    errno = EPROTO;
    if (clearance == Clearance::kInUse) return trouble;
    close_descriptors();
  }
}

void SharedFile::close_descriptors() {
  for (int* descriptor : {&descriptor_, &folder_descriptor_}) {
    if (*descriptor >= 0) ::close(std::exchange(*descriptor, -1));
  }
}

std::string SharedFile::open_file() {
  folder_descriptor_ = ::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor_ < 0) return explain("runtime folder " + folder_, errno);
  descriptor_ = ::open(below(folder_descriptor_, "directory").c_str(),
                       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat facts {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &facts) != 0) {
    return explain(folder_ + "/directory", errno);
  }
  if (!S_ISREG(facts.st_mode)) {
    errno = EINVAL;
    return folder_ + "/directory is not a regular file; remove it";
  }
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  return {};
}

// Several processes may do this at once: allocating twice changes nothing. Not posix_fallocate:
// where the file system cannot, glibc writes to each block, over what others have written.
std::string SharedFile::allocate() const {
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0) return explain(folder_ + "/directory", errno);
  constexpr off_t kBytes = sizeof(Table);
  if (facts.st_size >= kBytes && facts.st_blocks * 512 >= kBytes) return {};
  while (::fallocate(descriptor_, 0, 0, kBytes) != 0) {
    if (errno == EINTR) continue;
    const int code = errno;
    std::string text = explain(
        "no room for " + std::to_string(kBytes >> 10) + " KiB in " + folder_ + "/directory", code);
    errno = code;
    return text;
  }
  return {};
}

std::string SharedFile::map() {
  void* mapped = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) return explain("mapping " + folder_ + "/directory", errno);
  table_ = static_cast<Table*>(mapped);
  std::uint64_t format = 0;
  if (table_->format.compare_exchange_strong(format, kTableFormat) || format == kTableFormat) {
    return {};
  }
  ::munmap(mapped, sizeof(Table));
  errno = EPROTO;
  return folder_ +
         "/directory is in use by another version of uroce; end its programs, or use another "
         "runtime folder";
}

bool SharedFile::is_removed() const {
  struct stat facts {};
  return ::fstat(descriptor_, &facts) == 0 && facts.st_nlink == 0;
}

bool SharedFile::try_lock(std::uint32_t index) const {
  struct flock lock = record(F_WRLCK, index);
  return ::fcntl(descriptor_, F_SETLK, &lock) == 0;
}

void SharedFile::unlock(std::uint32_t index) const {
  struct flock lock = record(F_UNLCK, index);
  ::fcntl(descriptor_, F_SETLK, &lock);
}

bool SharedFile::is_locked_by_other(std::uint32_t index) const {
  struct flock lock = record(F_WRLCK, index);
  return ::fcntl(descriptor_, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool SharedFile::holds(std::uint32_t slot) const {
  return (held_[slot / 64].load(std::memory_order_acquire) >> (slot % 64) & 1) != 0;
}

void SharedFile::set_held(std::uint32_t slot, bool held) {
  const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
  if (held) {
    held_[slot / 64].fetch_or(bit, std::memory_order_release);
  } else {
    held_[slot / 64].fetch_and(~bit, std::memory_order_release);
  }
}

}  // namespace uroce::datapath
