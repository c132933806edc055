// SPDX-License-Identifier: BSD-2-Clause
#include "rdma_cm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>

#include "inode_table.h"
#include "rdma_cm_provider.h"

namespace uroce::kernel {

namespace {

constinit std::atomic<const RdmaCmProvider*> provider = nullptr;

constinit InodeTable opened;  // that are still open
constinit std::atomic<bool> any_was_opened = false;
constinit std::atomic<dev_t> device = 0;

void remember(const Stat& status) {
  device.store(status.st_dev, std::memory_order_relaxed);
  any_was_opened.store(true, std::memory_order_relaxed);
  opened.remember(status.st_ino);
}

void forget(ino_t inode) { opened.forget(inode); }

template <typename Status>
bool is_remembered(const Status& status) {
  return (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) &&
         status.st_dev == device.load(std::memory_order_relaxed) && opened.has(status.st_ino);
}

template <typename Status>
void disguise(Status& status) {
  if (!rdma_cm_was_opened() || !is_remembered(status)) return;
  status.st_mode = (status.st_mode & ~static_cast<mode_t>(S_IFMT)) | S_IFCHR;
  status.st_rdev = makedev(1, 3);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] ForgetRdmaCm uroce_set_rdma_cm_provider(
    const RdmaCmProvider* who) {
  provider.store(who, std::memory_order_release);
  return forget;
}

bool rdma_cm_was_opened() { return any_was_opened.load(std::memory_order_relaxed); }

int rdma_cm_open(int flags) {
  const RdmaCmProvider* const who = provider.load(std::memory_order_acquire);
  if (who == nullptr) {
    errno = ENODEV;
    return -1;
  }
  const int descriptor = who->open();
  if (descriptor < 0) return -1;
  Stat status;
  if (next().fstat(descriptor, &status) == 0) remember(status);
  if ((flags & O_CLOEXEC) == 0) fcntl(descriptor, F_SETFD, 0);
  if ((flags & O_NONBLOCK) != 0) fcntl(descriptor, F_SETFL, O_NONBLOCK);
  return descriptor;
}

bool rdma_cm_is_stand_in(const Stat& status) {
  return rdma_cm_was_opened() && is_remembered(status);
}

bool rdma_cm_is_command(const void* command, std::size_t bytes) {
  return command != nullptr && bytes >= kRdmaCmCommandBytesMin && bytes <= kRdmaCmCommandBytesMax;
}

ssize_t rdma_cm_execute(int descriptor, const Stat& status, const void* command,
                        std::size_t bytes) {
  return provider.load(std::memory_order_acquire)
      ->execute(descriptor, status.st_dev, status.st_ino, command, bytes);
}

void rdma_cm_disguise(Stat& status) { disguise(status); }
void rdma_cm_disguise(Stat64& status) { disguise(status); }

}  // namespace uroce::kernel
