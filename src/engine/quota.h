// SPDX-License-Identifier: BSD-2-Clause
// How many objects of a kind a device still gives: what ibv_query_device promises is enforced, at
// the number and not somewhere near it.
#pragma once

#include <atomic>
#include <cstdint>

namespace uroce::engine {

class Quota {
 public:
  explicit constexpr Quota(std::uint32_t limit) : left_(limit) {}

  [[nodiscard]] bool take() {
    std::uint32_t left = left_.load(std::memory_order_relaxed);
    while (left != 0) {
      if (left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void give_back() { left_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> left_;
};

// Per device and process.
inline constexpr std::uint32_t kQpMax = 16'384;
inline constexpr std::uint32_t kCqMax = 65'536;
inline constexpr std::uint32_t kSrqMax = 16'384;
inline constexpr std::uint32_t kMrMax = 262'144;
inline constexpr std::uint32_t kPdMax = 32'768;
inline constexpr std::uint32_t kAhMax = 65'536;

struct Quotas {
  Quota qp{kQpMax}, cq{kCqMax}, srq{kSrqMax}, mr{kMrMax}, pd{kPdMax}, ah{kAhMax};
};

}  // namespace uroce::engine
