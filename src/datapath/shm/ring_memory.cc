// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/ring_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace uroce::datapath::shm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

constexpr std::size_t file_bytes(std::uint32_t data_bytes) { return kControlBytes + data_bytes; }

Error ring_error(const char* what, std::uint32_t data_bytes, int code) {
  return {code, std::string(what) + " a ring of " + std::to_string(data_bytes >> 10) +
                    " KiB: " + std::strerror(code)};
}

bool is_sealed_and_whole(int descriptor, std::uint32_t data_bytes) {
  struct stat facts {};
  return (::fcntl(descriptor, F_GET_SEALS) & kSeals) == kSeals &&
         ::fstat(descriptor, &facts) == 0 &&
         static_cast<std::size_t>(facts.st_size) == file_bytes(data_bytes);
}

}  // namespace

// Not through munmap(): programs hook that and come back with ibv_dereg_mr, while we hold the
// engine's lock.
RingMemory::~RingMemory() {
  if (mapped_ != nullptr) ::syscall(SYS_munmap, mapped_, file_bytes(data_bytes_));
}

Result<RingMemory> RingMemory::make(std::uint32_t data_bytes) {
  RingMemory memory;
  memory.data_bytes_ = data_bytes;
  memory.descriptor_ =
      posix::Descriptor(::memfd_create("uroce-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.descriptor_.is_open()) return ring_error("making", data_bytes, errno);
  const auto bytes = static_cast<off_t>(file_bytes(data_bytes));
  if (::fallocate(memory.descriptor(), 0, 0, bytes) != 0 ||
      ::fcntl(memory.descriptor(), F_ADD_SEALS, kSeals) != 0) {
    return ring_error("allocating", data_bytes, errno);
  }
  if (!memory.map()) return ring_error("mapping", data_bytes, errno);
  return memory;
}

Result<RingMemory> RingMemory::adopt(int descriptor, std::uint32_t data_bytes) {
  RingMemory memory;
  memory.data_bytes_ = data_bytes;
  memory.descriptor_ = posix::Descriptor(descriptor);
  if (!is_sealed_and_whole(descriptor, data_bytes)) {
    return ring_error("checking", data_bytes, EBADF);
  }
  if (!memory.map()) return ring_error("mapping", data_bytes, errno);
  memory.close_descriptor();
  return memory;
}

bool RingMemory::map() {
  void* mapped = ::mmap(nullptr, file_bytes(data_bytes_), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, descriptor(), 0);
  if (mapped == MAP_FAILED) return false;
  mapped_ = mapped;
  return true;
}

}  // namespace uroce::datapath::shm
