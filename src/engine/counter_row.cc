// SPDX-License-Identifier: BSD-2-Clause
#include "engine/counter_row.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "posix/descriptor.h"

namespace uroce::engine {
namespace {

Error trouble_with(const std::string& file, int code) {
  return Error{code, file + ": " + std::strerror(code)};
}

// Not posix_fallocate, as for the directory's file: glibc's own way writes over others' rows.
int allocate(int file, off_t offset) {
  while (::fallocate(file, 0, offset, kCounterRowBytes) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

Result<std::unique_ptr<CounterRow>> CounterRow::open(const std::string& file, std::uint32_t row) {
  const posix::Descriptor descriptor(
      ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!descriptor.is_open()) return trouble_with(file, errno);
  const std::size_t start = std::size_t{row} * kCounterRowBytes;
  if (const int error = allocate(descriptor.get(), static_cast<off_t>(start)); error != 0) {
    return trouble_with(file, error);
  }
  const std::size_t offset = start % page_bytes();
  void* const page = ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
                            descriptor.get(), static_cast<off_t>(start - offset));
  if (page == MAP_FAILED) return trouble_with(file, errno);
  return std::unique_ptr<CounterRow>(new CounterRow(page, offset));
}

CounterRow::CounterRow(void* page, std::size_t offset)
    : page_(page),
      counters_(reinterpret_cast<PortCounters*>(static_cast<std::byte*>(page) + offset)),
      before_(*counters_) {}

CounterRow::~CounterRow() { ::munmap(page_, page_bytes()); }

// Zeros in place of the page. Where even that is not to be had it is the parent's still, which then
// counts what the child does to what it inherited.
void CounterRow::abandon_in_child() {
  static_cast<void>(::mmap(page_, page_bytes(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

PortCounters difference(const PortCounters& now, const PortCounters& before) {
  using Words = std::array<std::uint64_t, sizeof(PortCounters) / sizeof(std::uint64_t)>;
  auto words = std::bit_cast<Words>(now);
  const auto earlier = std::bit_cast<Words>(before);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] -= earlier[i];
  return std::bit_cast<PortCounters>(words);
}

}  // namespace uroce::engine
