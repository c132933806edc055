// SPDX-License-Identifier: BSD-2-Clause
#include "steering/hash.h"

#include <algorithm>
#include <bit>
#include <span>

#include "wire/bytes.h"

namespace uroce::steering {
namespace {

constexpr std::size_t kIpv4Bytes = 4;

// What is hashed, field behind field.
class Input {
 public:
  void add(std::span<const std::uint8_t> field) {
    std::ranges::copy(field, bytes_.begin() + size_);
    size_ += static_cast<std::ptrdiff_t>(field.size());
  }
  void add(Be16 field) { add(std::bit_cast<std::array<std::uint8_t, 2>>(field)); }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const {
    return {bytes_.data(), static_cast<std::size_t>(size_)};
  }

 private:
  std::array<std::uint8_t, kHashInputBytesMax> bytes_{};
  std::ptrdiff_t size_ = 0;
};

// The two bits of one pair of fields, source in the lower.
void add_addresses(Input& input, std::uint32_t pair, const FrameKey& key, std::size_t bytes) {
  if ((pair & 1) != 0) input.add(std::span(key.source).first(bytes));
  if ((pair & 2) != 0) input.add(std::span(key.destination).first(bytes));
}

void add_ports(Input& input, std::uint32_t pair, const FrameKey& key) {
  if ((pair & 1) != 0) input.add(key.source_port);
  if ((pair & 2) != 0) input.add(key.destination_port);
}

}  // namespace

std::uint32_t toeplitz(const ToeplitzKey& key, std::span<const std::uint8_t> input) {
  std::uint32_t hash = 0;
  std::uint32_t window = std::uint32_t{key[0]} << 24 | std::uint32_t{key[1]} << 16 |
                         std::uint32_t{key[2]} << 8 | key[3];
  for (std::size_t i = 0; i < input.size(); ++i) {
    for (int bit = 7; bit >= 0; --bit) {
      if ((input[i] >> bit & 1) != 0) hash ^= window;
      window = window << 1 | (std::uint32_t{key[i + 4]} >> bit & 1U);
    }
  }
  return hash;
}

std::uint32_t hash_of(const HashRule& rule, const FrameKey& key) {
  Input input;
  if (key.has(layer::kIpv4)) add_addresses(input, rule.fields, key, kIpv4Bytes);
  if (key.has(layer::kIpv6)) add_addresses(input, rule.fields >> 2, key, key.source.size());
  if (key.has(layer::kTcp)) add_ports(input, rule.fields >> 4, key);
  if (key.has(layer::kUdp)) add_ports(input, rule.fields >> 6, key);
  return toeplitz(rule.key, input.bytes());
}

}  // namespace uroce::steering
