// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/packet_pool.h"

#include <algorithm>
#include <new>

namespace uroce::datapath::tap {

PacketPool::PacketPool(std::size_t packets)
    : count_(packets),
      memory_(std::make_unique_for_overwrite<std::byte[]>(packets * sizeof(StoredPacket))) {}

StoredPacket* PacketPool::take() {
  if (StoredPacket* const free = free_.pop_front(); free != nullptr) return free;
  if (made_ == count_) return nullptr;
  return new (memory_.get() + made_++ * sizeof(StoredPacket)) StoredPacket;
}

StoredPacket* PacketPool::store(const RxPacket& packet) {
  StoredPacket* const stored = take();
  if (stored == nullptr) return nullptr;
  const ConstBytes bytes = packet.has_frame() ? packet.frame() : packet.bytes;
  std::byte* const payload = std::ranges::copy(bytes, stored->bytes.data()).out;
  std::ranges::copy(packet.detached_payload, payload);
  stored->packet = packet;
  stored->packet.bytes = {stored->bytes.data() + packet.frame_bytes_before, packet.bytes.size()};
  if (packet.payload_is_detached) {
    stored->packet.detached_payload = {payload, packet.detached_payload.size()};
  }
  if (packet.source != nullptr) {
    stored->source = *packet.source;
    stored->packet.source = &stored->source;
  }
  if (packet.destination != nullptr) {
    stored->destination = *packet.destination;
    stored->packet.destination = &stored->destination;
  }
  return stored;
}

}  // namespace uroce::datapath::tap
