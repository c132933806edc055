// SPDX-License-Identifier: BSD-2-Clause
// A set of inodes, found by hashing. Looking takes no lock, since a signal handler may look too.
// What does not fit any more is not in it.
//
// Between the first place of an inode and the one where it stands none is vacant. Where one goes,
// those behind it therefore move up, and nothing is left of it that searches would have to pass.
// One that moves stands in both places for a while; `moves_` tells whoever looked into the one
// before it came and into the other after it had gone.
#pragma once

#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

namespace uroce::kernel {

class InodeTable {
 public:
  void remember(ino_t inode) {
    const Writer writer(writer_);
    std::size_t place = first_place(inode);
    for (std::size_t tries = 0; tries < kPlaces; ++tries, place = after(place)) {
      if (places_[place].load() != kVacant) continue;
      places_[place].store(inode);
      return;
    }
  }

  void forget(ino_t inode) {
    const Writer writer(writer_);
    const std::size_t first = find(inode);
    if (first == kNowhere) return;
    std::size_t free = first;
    for (std::size_t place = after(first); place != first; place = after(place)) {
      const ino_t behind = places_[place].load();
      if (behind == kVacant) break;
      if (distance(first_place(behind), place) < distance(free, place)) continue;
      places_[free].store(behind);
      ++moves_;
      free = place;
    }
    places_[free].store(kVacant);
  }

  [[nodiscard]] bool has(ino_t inode) const { return find(inode) != kNowhere; }

  // For tests.
  [[nodiscard]] std::size_t occupied() const {
    std::size_t count = 0;
    for (const auto& place : places_) count += place.load() != kVacant ? 1U : 0U;
    return count;
  }

 private:
  static constexpr std::size_t kPlaces = 1 << 16, kNowhere = kPlaces;
  static constexpr ino_t kVacant = 0;

  // Only one thread writes. A lock that another process holds is what a forked child inherited of
  // a thread that it does not have.
  class Writer {
   public:
    explicit Writer(std::atomic<pid_t>& who) : who_(who) {
      const pid_t self = getpid();
      for (;;) {
        pid_t holder = who_.load();
        if (holder != self && who_.compare_exchange_weak(holder, self)) return;
        sched_yield();
      }
    }
    ~Writer() { who_.store(0); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

   private:
    std::atomic<pid_t>& who_;
  };

  static std::size_t first_place(ino_t inode) { return inode * 0x9e37'79b9'7f4a'7c15 >> 48; }
  static std::size_t after(std::size_t place) { return (place + 1) % kPlaces; }
  static std::size_t distance(std::size_t from, std::size_t to) { return (to - from) % kPlaces; }

  [[nodiscard]] std::size_t find(ino_t inode) const {
    for (;;) {
      const std::size_t moves = moves_.load();
      const std::size_t place = look_for(inode);
      if (place != kNowhere || moves_.load() == moves) return place;
    }
  }
  [[nodiscard]] std::size_t look_for(ino_t inode) const {
    std::size_t place = first_place(inode);
    for (std::size_t tries = 0; tries < kPlaces; ++tries, place = after(place)) {
      const ino_t found = places_[place].load();
      if (found == inode) return place;
      if (found == kVacant) return kNowhere;
    }
    return kNowhere;
  }

  std::atomic<ino_t> places_[kPlaces] = {};
  std::atomic<std::size_t> moves_ = 0;
  std::atomic<pid_t> writer_ = 0;
};

}  // namespace uroce::kernel
