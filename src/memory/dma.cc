// SPDX-License-Identifier: BSD-2-Clause
#include "memory/dma.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace uroce::memory {
namespace {

using AtomicWord = std::atomic_ref<std::uint64_t>;
static_assert(AtomicWord::is_always_lock_free, "or the application's atomics would not exclude us");

// Null when the address does not allow it.
std::uint64_t* atomic_word(std::byte* target) {
  const auto address = std::bit_cast<std::uintptr_t>(target);
  if (address % AtomicWord::required_alignment != 0) return nullptr;
  return static_cast<std::uint64_t*>(static_cast<void*>(target));
}

}  // namespace

std::size_t gather(std::span<const ConstBytes> pieces, Bytes target) {
  std::size_t done = 0;
  for (const ConstBytes piece : pieces) {
    const std::size_t length = std::min(piece.size(), target.size() - done);
    if (length != 0) std::memmove(target.data() + done, piece.data(), length);
    done += length;
  }
  return done;
}

std::size_t scatter(ConstBytes source, std::span<const Bytes> pieces) {
  std::size_t done = 0;
  for (const Bytes piece : pieces) {
    const std::size_t length = std::min(piece.size(), source.size() - done);
    if (length != 0 && piece.data() != nullptr) {
      std::memmove(piece.data(), source.data() + done, length);
    }
    done += length;
  }
  return done;
}

std::optional<std::uint64_t> compare_and_swap(std::byte* target, std::uint64_t expected,
                                              std::uint64_t desired) {
  std::uint64_t* word = atomic_word(target);
  if (word == nullptr) return std::nullopt;
  // On failure `expected` is replaced by what was there; on success it is what was there.
  AtomicWord(*word).compare_exchange_strong(expected, desired);
  return expected;
}

std::optional<std::uint64_t> fetch_and_add(std::byte* target, std::uint64_t addend) {
  std::uint64_t* word = atomic_word(target);
  if (word == nullptr) return std::nullopt;
  return AtomicWord(*word).fetch_add(addend);
}

bool atomic_write(ConstBytes source, std::byte* target) {
  std::uint64_t* word = atomic_word(target);
  if (word == nullptr) return false;
  std::uint64_t value = 0;
  std::memcpy(&value, source.data(), sizeof value);
  AtomicWord(*word).store(value);
  return true;
}

}  // namespace uroce::memory
