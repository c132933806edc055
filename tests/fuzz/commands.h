// SPDX-License-Identifier: BSD-2-Clause
// A fuzzer's bytes read as commands and their arguments, front to back, so that two inputs with the
// same beginning do the same things. Behind the end there are only zeroes.
//
// Wrong: two of these calls as arguments of one function; compilers differ in which comes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uroce::fuzz {

class Commands {
 public:
  Commands(const std::uint8_t* data, std::size_t bytes) : rest_(data, bytes) {}

  [[nodiscard]] bool are_over() const { return rest_.empty(); }

  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint16_t half() {
    const unsigned high = byte();
    return static_cast<std::uint16_t>(high << 8 | byte());
  }
  std::uint32_t word() {
    const std::uint32_t high = half();
    return high << 16 | half();
  }
  std::int32_t small() { return static_cast<std::int8_t>(byte()); }  // of either sign
  bool flag() { return (byte() & 1) != 0; }
  std::uint32_t below(std::uint32_t bound) { return byte() % bound; }  // of at most 256
  // At most so many bytes of what is left.
  std::span<const std::uint8_t> bytes(std::size_t count) {
    const auto taken = rest_.first(count < rest_.size() ? count : rest_.size());
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace uroce::fuzz
