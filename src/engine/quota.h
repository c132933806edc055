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

  [[nodiscard]] bool take(std::uint32_t count = 1) {
    std::uint32_t left = left_.load(std::memory_order_relaxed);
    while (left >= count) {
      if (left_.compare_exchange_weak(left, left - count, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void give_back(std::uint32_t count = 1) { left_.fetch_add(count, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> left_;
};

// Per device and process.
inline constexpr std::uint32_t kQpMax = 16'384;
inline constexpr std::uint32_t kCqMax = 65'536;
inline constexpr std::uint32_t kSrqMax = 16'384;
inline constexpr std::uint32_t kMrMax = 1'048'576;
inline constexpr std::uint32_t kMwMax = 262'144;
inline constexpr std::uint32_t kPdMax = 32'768;
inline constexpr std::uint32_t kAhMax = 65'536;
inline constexpr std::uint32_t kMulticastGroupsMax = 256;
// Each takes its copy in one turn, so that a packet must not cost without end.
inline constexpr std::uint32_t kMulticastMembersMax = 256;  // of a group
inline constexpr std::uint32_t kFlowsMax = 65'536;
inline constexpr std::uint32_t kWqMax = 16'384;
inline constexpr std::uint32_t kRwqTablesMax = 16'384;
inline constexpr std::uint32_t kDmBytesMax = 1U << 24;  // of device memory

struct Quotas {
  Quota qp{kQpMax}, cq{kCqMax}, srq{kSrqMax}, mr{kMrMax}, mw{kMwMax}, pd{kPdMax}, ah{kAhMax};
  Quota dm_bytes{kDmBytesMax};
  Quota multicast_groups{kMulticastGroupsMax};
  Quota flows{kFlowsMax}, wq{kWqMax}, rwq_tables{kRwqTablesMax};
};

}  // namespace uroce::engine
