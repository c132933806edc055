// SPDX-License-Identifier: BSD-2-Clause
#include "engine/qpn_allocator.h"

namespace uroce::engine {

QpnAllocator::~QpnAllocator() {
  for (const Block& block : blocks_) source_.release_block(block.number);
}

std::optional<QpnAllocator::Allocation> QpnAllocator::allocate() {
  if (used_of_last_ < kQpnsPerBlock) {
    return Allocation{{blocks_.back().number * kQpnsPerBlock + used_of_last_++}, nullptr};
  }
  if (resting_.size() >= kRestAtLeast) return reuse_oldest();
  const std::optional<std::uint32_t> claimed = source_.claim_block();
  if (!claimed) {
    if (resting_.empty()) return std::nullopt;
    return reuse_oldest();
  }
  blocks_.push_back({*claimed, std::make_unique<transport::QpBlock>()});
  used_of_last_ = 1;
  return Allocation{{*claimed * kQpnsPerBlock}, blocks_.back().slots.get()};
}

QpnAllocator::Allocation QpnAllocator::reuse_oldest() {
  const Qpn oldest = resting_.front();
  resting_.pop_front();
  return {oldest, nullptr};
}

}  // namespace uroce::engine
