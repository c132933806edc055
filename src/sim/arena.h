// SPDX-License-Identifier: BSD-2-Clause
// Registered memory, and beside it what every byte of it must be. A byte that changes without a
// reason, inside a region or round it, is found when the two are compared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/prng.h"
#include "memory/sge.h"
#include "uroce/packet.h"

namespace uroce::sim {

struct Range {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

class Arena {
 public:
  // `id` is unique on its node; memory is filled at random.
  Arena(std::uint32_t id, std::uint32_t bytes, Prng prng);

  [[nodiscard]] std::uint32_t key() const { return key_; }
  [[nodiscard]] std::uint64_t address(std::uint32_t offset) const { return iova_ + offset; }
  [[nodiscard]] std::uint32_t bytes() const { return bytes_; }
  [[nodiscard]] memory::Sge sge(Range r) const { return {address(r.offset), r.bytes, {key_}}; }

  [[nodiscard]] Bytes memory(Range r) { return {memory_.get() + r.offset, r.bytes}; }
  [[nodiscard]] Bytes expected(Range r) { return {expected_.get() + r.offset, r.bytes}; }
  [[nodiscard]] Range whole() const { return {0, bytes()}; }

  [[nodiscard]] bool is_as_expected(Range r) const {
    return std::memcmp(memory_.get() + r.offset, expected_.get() + r.offset, r.bytes) == 0;
  }
  // The first byte that is not; there is one.
  [[nodiscard]] std::uint32_t first_unexpected(Range r) const;
  // Whatever is there is right.
  void accept(Range r) {
    std::memcpy(expected_.get() + r.offset, memory_.get() + r.offset, r.bytes);
  }

 private:
  std::uint32_t key_;
  std::uint64_t iova_;
  std::uint32_t bytes_;
  std::unique_ptr<std::byte[]> memory_, expected_;
};

}  // namespace uroce::sim
