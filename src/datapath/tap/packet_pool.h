// SPDX-License-Identifier: BSD-2-Clause
// Copies of received packets that have to wait. The number is fixed when the pool is made; memory
// of those never used is never touched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/list.h"
#include "uroce/packet.h"
#include "uroce/time.h"

namespace uroce::datapath::tap {

struct StoredPacket {
  // Headers, payload, pad: room for the longest at the largest path MTU, and for the Ethernet frame
  // round it.
  static constexpr std::size_t kBytes = kMaxHeaderBytes + 4096 + 512;

  ListHook hook;
  Instant due{};                  // not handed out before, or at the latest then
  std::uint8_t overtaken_by = 0;  // so many others first
  RxPacket packet;                // into what follows
  Gid source, destination;
  std::array<std::byte, kBytes> bytes;
};

static_assert(std::is_trivially_destructible_v<StoredPacket>);

using StoredPackets = List<StoredPacket, &StoredPacket::hook>;

class PacketPool {
 public:
  explicit PacketPool(std::size_t packets);

  // Larger packets than a pool takes are none of RoCE's.
  [[nodiscard]] static bool is_storable(const RxPacket& packet) {
    const std::size_t bytes = packet.has_frame() ? packet.frame().size() : packet.bytes.size();
    return bytes + packet.detached_payload.size() <= StoredPacket::kBytes;
  }
  // A copy of `packet`, which is storable; null when all are in use.
  [[nodiscard]] StoredPacket* store(const RxPacket& packet);
  void give_back(StoredPacket& packet) { free_.push_back(packet); }
  void give_back_all(StoredPackets& packets) { free_.append(packets); }

 private:
  [[nodiscard]] StoredPacket* take();

  std::size_t count_;
  std::size_t made_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  StoredPackets free_;
};

}  // namespace uroce::datapath::tap
