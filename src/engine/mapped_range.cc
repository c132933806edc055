// SPDX-License-Identifier: BSD-2-Clause
#include "engine/mapped_range.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "memory/mr_table.h"
#include "posix/descriptor.h"
#include "posix/uncancelled.h"

#ifndef MADV_POPULATE_READ  // Linux 5.14
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace uroce::engine {
namespace {

constexpr std::uint64_t kFaultInAtMost = std::uint64_t{256} << 20;

struct PageRange {
  std::uint64_t first = 0;
  // Inclusive, so that the last page of the address space is no special case.
  std::uint64_t last = 0;
};

PageRange pages_of(std::uint64_t address, std::uint64_t length) {
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return {address & ~(page - 1), (address + (length - 1)) | (page - 1)};
}

// 0 or an errno. Not through madvise, which UCX and others hook.
int populate(std::uint64_t first, std::uint64_t bytes, MemoryUse use) {
  const int advice = use == MemoryUse::kWrite ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  while (syscall(SYS_madvise, first, bytes, advice) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

struct Mapping {
  std::uint64_t from = 0, to = 0;
  std::array<char, 2> rights{};  // "rw"
};

// The lines of /proc/self/maps, without a stream, which would allocate.
class Maps {
 public:
  [[nodiscard]] bool is_open() const { return descriptor_.is_open(); }

  bool next(Mapping& mapping) {
    std::array<char, 48> start;  // of a line; "from-to rw" is never longer
    std::size_t length = 0;
    for (char c = 0; c != '\n';) {
      if (!read_char(c)) return false;
      if (length < start.size()) start[length++] = c;
    }
    const char* const end = start.data() + length;
    const auto from = std::from_chars(start.data(), end, mapping.from, 16);
    if (from.ptr == end) return false;
    const auto to = std::from_chars(from.ptr + 1, end, mapping.to, 16);
    if (end - to.ptr < 3) return false;
    mapping.rights = {to.ptr[1], to.ptr[2]};
    return true;
  }

 private:
  bool read_char(char& c) {
    if (next_ == end_) {
      const ssize_t bytes = read(descriptor_.get(), buffer_.data(), buffer_.size());
      if (bytes <= 0) return false;
      next_ = 0;
      end_ = static_cast<std::size_t>(bytes);
    }
    c = buffer_[next_++];
    return true;
  }

  posix::Descriptor descriptor_{open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
  std::size_t next_ = 0, end_ = 0;
  std::array<char, 4096> buffer_;
};

// Whether the maps cover the range without a gap and with the rights.
bool maps_cover(PageRange range, MemoryUse use) {
  const posix::Uncancelled whole;
  Maps maps;
  // Nothing to look at: let it pass, and let a bad address fault where it is used.
  if (!maps.is_open()) return true;
  for (Mapping mapping; maps.next(mapping);) {
    if (mapping.to <= range.first) continue;
    if (mapping.from > range.first) return false;
    if (mapping.rights[0] != 'r') return false;
    if (use == MemoryUse::kWrite && mapping.rights[1] != 'w') return false;
    if (mapping.to - 1 >= range.last) return true;
    range.first = mapping.to;
  }
  return false;
}

}  // namespace

int check_mapped(std::uint64_t address, std::uint64_t length, MemoryUse use) {
  const PageRange range = pages_of(address, length);
  const std::uint64_t bytes = range.last - range.first;  // one less, so that it cannot wrap
  const std::uint64_t budget = std::min(bytes, kFaultInAtMost - 1) + 1;
  const int error = populate(range.first, budget, use);
  if (error == 0 && budget - 1 == bytes) return 0;
  // ENOMEM is a hole, or no memory.
  if (error == ENOMEM) return maps_cover(range, use) ? ENOMEM : EFAULT;
  // A page that cannot be had, whatever the maps say: behind the end of a file, or broken memory.
  if (error == EFAULT || error == EHWPOISON) return EFAULT;
  // The kernel may not know the advice, or the mapping (of a device) may not allow it; and behind
  // the budget only the maps are asked.
  return maps_cover(range, use) ? 0 : EFAULT;
}

int bring_in(std::uint64_t address, std::uint64_t length, MemoryUse use) {
  if (memory::range_wraps(address, length)) return EFAULT;
  const PageRange range = pages_of(address, length);
  const int error = populate(range.first, range.last - range.first + 1, use);
  // As above. ENOMEM is a hole, or no memory; either way there is nothing to use.
  if (error == EINVAL) return maps_cover(range, use) ? 0 : EFAULT;
  return error == 0 ? 0 : EFAULT;
}

bool OnDemandPager::bring_in(std::byte* at, std::uint64_t length, bool writes) const {
  const MemoryUse use = writes ? MemoryUse::kWrite : MemoryUse::kRead;
  return engine::bring_in(reinterpret_cast<std::uintptr_t>(at), length, use) == 0;
}

}  // namespace uroce::engine
