// SPDX-License-Identifier: BSD-2-Clause
// A set of inodes, found by hashing, without a lock since a signal handler may ask too. What does
// not fit any more is not in it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>

namespace uroce::kernel {

class InodeTable {
 public:
  void remember(ino_t inode) {
    std::size_t place = first_place(inode);
    for (std::size_t tries = 0; tries < kPlaces; ++tries, place = (place + 1) % kPlaces) {
      ino_t found = places_[place].load(std::memory_order_relaxed);
      if ((found == kVacant || found == kForgotten) &&
          places_[place].compare_exchange_strong(found, inode)) {
        return;
      }
    }
  }

  void forget(ino_t inode) {
    if (const std::size_t place = find(inode); place != kNowhere) places_[place].store(kForgotten);
  }

  [[nodiscard]] bool has(ino_t inode) const { return find(inode) != kNowhere; }

  // How many places a search may have to pass; for tests.
  [[nodiscard]] std::size_t occupied() const {
    std::size_t count = 0;
    for (const auto& place : places_) count += place.load() != kVacant ? 1U : 0U;
    return count;
  }

 private:
  static constexpr std::size_t kPlaces = 1 << 16, kNowhere = kPlaces;
  static constexpr ino_t kVacant = 0, kForgotten = 1;

  static std::size_t first_place(ino_t inode) { return inode * 0x9e37'79b9'7f4a'7c15 >> 48; }

  [[nodiscard]] std::size_t find(ino_t inode) const {
    std::size_t place = first_place(inode);
    for (std::size_t tries = 0; tries < kPlaces; ++tries, place = (place + 1) % kPlaces) {
      const ino_t found = places_[place].load(std::memory_order_acquire);
      if (found == inode) return place;
      if (found == kVacant) return kNowhere;
    }
    return kNowhere;
  }

  std::atomic<ino_t> places_[kPlaces] = {};
};

}  // namespace uroce::kernel
