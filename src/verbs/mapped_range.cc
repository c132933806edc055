// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/mapped_range.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#ifndef MADV_POPULATE_READ  // Linux 5.14
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace uroce::verbs {
namespace {

constexpr std::uint64_t kFaultInAtMost = std::uint64_t{256} << 20;

struct PageRange {
  std::uint64_t first = 0;
  std::uint64_t last =
      0;  // inclusive, so that the last page of the address space is no special case
};

PageRange pages_of(std::uint64_t address, std::uint64_t length) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return {address & ~(page - 1), (address + (length - 1)) | (page - 1)};
}

// Whether the maps cover the range without a gap and with the rights.
bool maps_cover(PageRange range, MemoryUse use) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             std::fclose);
  // Nothing to look at: let it pass, and let a bad address fault where it is used.
  if (maps == nullptr) return true;
  char line[512];
  bool at_line_start = true;
  while (std::fgets(line, sizeof(line), maps.get()) != nullptr) {
    const bool starts = at_line_start;
    at_line_start = line[std::char_traits<char>::length(line) - 1] == '\n';
    unsigned long long from = 0, to = 0;
    char rights[5];
    if (!starts || std::sscanf(line, "%llx-%llx %4s", &from, &to, rights) != 3) continue;
    if (to <= range.first) continue;
    if (from > range.first) return false;
    if (rights[0] != 'r' || (use == MemoryUse::kWrite && rights[1] != 'w')) return false;
    if (to - 1 >= range.last) return true;
    range.first = to;
  }
  return false;
}

}  // namespace

int check_mapped(std::uint64_t address, std::uint64_t length, MemoryUse use) {
  const PageRange range = pages_of(address, length);
  const std::uint64_t bytes = range.last - range.first;  // one less, so that it cannot wrap
  const std::uint64_t budget = std::min(bytes, kFaultInAtMost - 1) + 1;
  const int advice = use == MemoryUse::kWrite ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  const bool populated = madvise(reinterpret_cast<void*>(range.first), budget, advice) == 0;
  if (populated && budget - 1 == bytes) return 0;
  if (!populated && errno == ENOMEM && maps_cover(range, use)) return ENOMEM;
  // The kernel may not know the advice, or the mapping (of a device) may not allow it.
  return maps_cover(range, use) ? 0 : EFAULT;
}

}  // namespace uroce::verbs
