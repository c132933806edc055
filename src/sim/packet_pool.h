// SPDX-License-Identifier: BSD-2-Clause
// Packets on their way, in slots that are used again and again: nothing is allocated per packet.
// A packet that a link duplicates is one slot with two users; whoever changes bytes copies first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "uroce/packet.h"

namespace uroce::sim {

class Link;

using PacketId = std::uint32_t;

struct PacketInfo {
  std::uint32_t bytes = 0;          // from the BTH to the pad; of a run, its headers
  std::uint32_t payload_bytes = 0;  // of a run, which lies behind kMaxHeaderBytes
  std::uint32_t packet_count = 1;
  bool is_run = false;
  bool has_addresses = false;  // of a datagram: its receiver learns them, also over memory
  bool is_to_group = false;
  std::uint32_t users = 0;
  Link* via = nullptr;
};

class PacketPool {
 public:
  // No packet, pad and ICRC included, is longer than `slot_bytes`.
  explicit PacketPool(std::size_t slot_bytes) : slot_bytes_(slot_bytes) {}

  [[nodiscard]] PacketId allocate() {
    if (free_.empty()) grow();
    const PacketId id = free_.back();
    free_.pop_back();
    infos_[id] = PacketInfo{};
    infos_[id].users = 1;
    return id;
  }
  void share(PacketId id) { ++infos_[id].users; }
  void release(PacketId id) {
    if (--infos_[id].users == 0) free_.push_back(id);
  }
  [[nodiscard]] PacketInfo& info(PacketId id) { return infos_[id]; }
  [[nodiscard]] std::byte* data(PacketId id) {
    return chunks_[id / kChunkSlots].get() + id % kChunkSlots * slot_bytes_;
  }
  [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes_; }
  [[nodiscard]] bool is_unused() const { return free_.size() == infos_.size(); }

  // As the receiver's datapath would lend it.
  [[nodiscard]] RxPacket received(PacketId id);

 private:
  static constexpr std::size_t kChunkSlots = 64;
  void grow();

  std::size_t slot_bytes_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::vector<PacketInfo> infos_;
  std::vector<PacketId> free_;
};

}  // namespace uroce::sim
