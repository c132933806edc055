// SPDX-License-Identifier: BSD-2-Clause
// Copying a payload into a ring, by the way that suits where the reader's core is.
//
// Where both cores share a cache, plain stores are best: the reader finds the bytes there. Where
// they do not, each line that was stored plainly is fetched from the other core's cache one by one,
// and non-temporal stores to memory are twice as fast. Measured with 64 KiB frames through a ring
// of 2 MiB between two Zen 1 cores:
//
//                              plain            non-temporal
//   one cache for both         19 to 24 GB/s    5 to 9 GB/s
//   one each                   3.5 to 4.6 GB/s  6.5 to 8 GB/s
//
// Which of the two it is cannot be asked (threads move, and so do the processors under a guest),
// but the copy itself feels it. So a Copier counts the ticks of its large copies, uses the cheaper
// way, and tries the other one now and then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uroce::datapath::shm {

class Copier {
 public:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes == 0) return;  // and the pointers may be null, which memcpy's may not
    if (bytes < kLargeBytes) {
      std::memcpy(to, from, bytes);
    } else {
      copy_large(to, from, bytes);
    }
  }

 private:
  enum Way : std::size_t { kPlain, kNonTemporal };
  static constexpr std::size_t kLargeBytes = 16384;
  static constexpr std::uint32_t kTryOtherEvery = 256;

  void copy_large(std::byte* to, const std::byte* from, std::size_t bytes);
  [[nodiscard]] Way next_way();
  void learn(Way way, std::uint64_t ticks, std::size_t bytes);

  std::array<std::uint64_t, 2> cost_{};  // ticks per MiB, smoothed; 0: not tried yet
  std::uint32_t copies_ = 0;
};

}  // namespace uroce::datapath::shm
