// SPDX-License-Identifier: BSD-2-Clause
#include "sim/packet_pool.h"

namespace uroce::sim {

void PacketPool::grow() {
  const auto first = static_cast<PacketId>(infos_.size());
  chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kChunkSlots * slot_bytes_));
  infos_.resize(infos_.size() + kChunkSlots);
  for (std::size_t i = kChunkSlots; i-- != 0;) {
    free_.push_back(first + static_cast<PacketId>(i));
  }
}

RxPacket PacketPool::received(PacketId id) {
  const PacketInfo& packet = infos_[id];
  std::byte* const start = data(id);
  RxPacket out;
  out.bytes = {start, packet.bytes};
  out.packet_count = static_cast<std::uint16_t>(packet.packet_count);
  out.payload_is_detached = packet.is_run;
  if (packet.is_run) out.detached_payload = {start + kMaxHeaderBytes, packet.payload_bytes};
  return out;
}

}  // namespace uroce::sim
