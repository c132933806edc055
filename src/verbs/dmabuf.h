// SPDX-License-Identifier: BSD-2-Clause
// The memory behind a dma-buf, mapped into this process for as long as its region lives. The
// exporter must be one that maps its buffers (udmabuf and system heaps do, many GPUs do not).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace uroce::verbs {

class DmabufMapping {
 public:
  DmabufMapping() = default;
  ~DmabufMapping();
  DmabufMapping(const DmabufMapping&) = delete;
  DmabufMapping& operator=(const DmabufMapping&) = delete;

  // 0; EBADF for what is no descriptor, EINVAL for one of something else or a range outside of it,
  // or what mmap says.
  [[nodiscard]] int map(int descriptor, std::uint64_t offset, std::uint64_t length, bool writable);
  [[nodiscard]] bool is_there() const { return start_ != nullptr; }
  // Where byte `offset` of the dma-buf is.
  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return start_ + (offset - first_); }

  friend void swap(DmabufMapping& a, DmabufMapping& b) noexcept {
    std::swap(a.start_, b.start_);
    std::swap(a.first_, b.first_);
    std::swap(a.bytes_, b.bytes_);
  }

 private:
  std::byte* start_ = nullptr;
  std::uint64_t first_ = 0;  // of the dma-buf, a whole number of pages
  std::size_t bytes_ = 0;
};

// man ibv_reg_mr: the address that a dma-buf's region is known by must have its offset in a page.
[[nodiscard]] bool have_one_page_offset(std::uint64_t a, std::uint64_t b);

}  // namespace uroce::verbs
