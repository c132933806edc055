// SPDX-License-Identifier: BSD-2-Clause
// Memory that a test maps, unmaps in part, and at last as a whole.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace uroce::test {

inline constexpr std::size_t kPage = 4'096;

struct Mapping {
  explicit Mapping(std::size_t bytes, int rights = PROT_READ | PROT_WRITE)
      : length(bytes),
        address(mmap(nullptr, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    // A page becomes memory alone, also where the kernel would like to make them huge.
    madvise(address, length, MADV_NOHUGEPAGE);
  }
  ~Mapping() { munmap(address, length); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::uint64_t at() const { return reinterpret_cast<std::uintptr_t>(address); }
  [[nodiscard]] std::byte* bytes() const { return static_cast<std::byte*>(address); }
  void unmap_page(std::size_t index) const { munmap(bytes() + index * kPage, kPage); }
  // Has become memory.
  [[nodiscard]] bool is_resident(std::size_t page) const {
    unsigned char state = 0;
    return mincore(bytes() + page * kPage, kPage, &state) == 0 && (state & 1) != 0;
  }

  std::size_t length;
  void* address;
};

}  // namespace uroce::test
