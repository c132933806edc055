// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/dmabuf.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

namespace uroce::verbs {
namespace {

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

int check(int descriptor, std::uint64_t offset, std::uint64_t length) {
  struct statfs system {};
  if (fstatfs(descriptor, &system) != 0) return errno;
  if (system.f_type != DMA_BUF_MAGIC) return EINVAL;
  const off_t end = lseek(descriptor, 0, SEEK_END);
  if (end < 0) return errno;
  const auto size = static_cast<std::uint64_t>(end);
  return length != 0 && offset <= size && length <= size - offset ? 0 : EINVAL;
}

}  // namespace

bool have_one_page_offset(std::uint64_t a, std::uint64_t b) { return (a ^ b) % page_bytes() == 0; }

int DmabufMapping::map(int descriptor, std::uint64_t offset, std::uint64_t length, bool writable) {
  if (const int error = check(descriptor, offset, length); error != 0) return error;
  const std::uint64_t in_page = offset % page_bytes();
  const std::size_t bytes = in_page + length;
  const int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const start =
      mmap(nullptr, bytes, rights, MAP_SHARED, descriptor, static_cast<off_t>(offset - in_page));
  if (start == MAP_FAILED) return errno;
  start_ = static_cast<std::byte*>(start);
  first_ = offset - in_page;
  bytes_ = bytes;
  return 0;
}

DmabufMapping::~DmabufMapping() {
  if (start_ != nullptr) munmap(start_, bytes_);
}

}  // namespace uroce::verbs
