// SPDX-License-Identifier: BSD-2-Clause
// Rings and tables: memory of zeroes, at the start of a cache line, of which only the touched pages
// cost anything. Allocated and freed on control paths, outside every lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

namespace uroce::engine {

class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  // Empty when there is no memory.
  explicit ZeroedMemory(std::size_t bytes) {
    block_.reset(std::calloc(1, bytes + kAlignment));
    if (block_ == nullptr) return;
    bytes_ = bytes;
    const auto address = reinterpret_cast<std::uintptr_t>(block_.get());
    start_ = static_cast<std::byte*>(block_.get()) + (-address & (kAlignment - 1));
  }

  explicit operator bool() const { return block_ != nullptr; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {start_, bytes_}; }
  // As objects for which zeroes are a value.
  template <typename T>
  [[nodiscard]] std::span<T> as() const {
    static_assert(alignof(T) <= kAlignment);
    return {reinterpret_cast<T*>(start_), bytes_ / sizeof(T)};
  }
  friend void swap(ZeroedMemory& a, ZeroedMemory& b) noexcept {
    std::swap(a.block_, b.block_);
    std::swap(a.start_, b.start_);
    std::swap(a.bytes_, b.bytes_);
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };

  std::unique_ptr<void, Free> block_;
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace uroce::engine
