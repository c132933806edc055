// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/inbound.h"

#include <unistd.h>

#include <bit>

namespace uroce::datapath::shm {
namespace {

constexpr std::uint64_t kLargestRing = std::uint64_t{64} << 20;

}  // namespace

Inbound::Opened Inbound::open(const ControlSocket::Received& received) {
  const std::uint64_t bytes = received.offer.data_bytes;
  if (!std::has_single_bit(bytes) || bytes < kLineBytes || bytes > kLargestRing ||
      received.offer.from.index >= kSlotCount) {
    ::close(received.descriptor);
    return Opened::kNot;
  }
  const auto data_bytes = static_cast<std::uint32_t>(bytes);
  Result<RingMemory> memory = RingMemory::adopt(received.descriptor, data_bytes);
  if (!memory) return Opened::kNot;
  if (memory->control().adopted.exchange(1, std::memory_order_relaxed) != 0) return Opened::kBefore;
  memory_ = std::move(*memory);
  from_ = received.offer.from;
  reader_ = RingReader(memory_.control(), memory_.data(), data_bytes, received.offer.key);
  is_lent = false;
  return Opened::kYes;
}

}  // namespace uroce::datapath::shm
