// SPDX-License-Identifier: BSD-2-Clause
// An engine without a network: QPN blocks out of a list, a port with made-up addresses, and a link
// whose frames come back as packets. Single-threaded tests see every packet they sent; a link that
// is `full` refuses, one with `silent` descriptors has to be looked at.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "posix/uncancelled.h"
#include "uroce/datapath.h"

namespace uroce::engine {

inline Gid test_gid(std::uint8_t last) {
  Gid gid;
  gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
  return gid;
}

class FakeBlocks final : public BlockSource {
 public:
  std::optional<std::uint32_t> claim_block() override {
    if (left == 0) return std::nullopt;
    --left;
    held.insert(next);
    return next++;
  }
  void release_block(std::uint32_t block) override { held.erase(block); }
  void abandon_in_child() override {}

  std::uint32_t next = 1;
  std::uint32_t left = 1'000;
  std::set<std::uint32_t> held;
};

class LoopbackLink final : public Datapath {
 public:
  LoopbackLink() { capabilities_.trusted_memory = true; }
  ~LoopbackLink() override { close(descriptor_); }

  [[nodiscard]] const DatapathCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] const DatapathCounters& counters() const override { return counters_; }
  [[nodiscard]] int open_path(Path& path, Qpn) override {
    if (open_error != 0) return open_error;
    path.route = 1;
    ++open_paths;
    return 0;
  }
  void close_path(Path&) override { --open_paths; }

  [[nodiscard]] std::size_t rx_burst(std::span<RxPacket> packets) override {
    lent_.clear();
    const std::size_t n = std::min(packets.size(), queue_.size());
    for (std::size_t i = 0; i < n; ++i) {
      lent_.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    for (std::size_t i = 0; i < n; ++i) {
      packets[i] = RxPacket{};
      packets[i].bytes = lent_[i].header;
      packets[i].detached_payload = lent_[i].payload;
      packets[i].payload_is_detached = true;
      packets[i].packet_count = lent_[i].count;
    }
    return n;
  }
  std::size_t tx_burst(std::span<TxFrame> frames) override {
    std::size_t refused = 0;
    for (TxFrame& frame : frames) {
      frame.refused = full || queue_.size() >= room;
      if (frame.refused) {
        ++refused;
      } else {
        accept(frame);
      }
    }
    return refused;
  }
  void on_turn(Instant) override { ++turns; }
  [[nodiscard]] int wakeup_descriptor() const override { return silent ? -1 : descriptor_; }
  [[nodiscard]] bool arm_wakeup() override {
    if (!queue_.empty()) return false;
    armed = true;
    return true;
  }
  void disarm_wakeup() override {
    armed = false;
    std::uint64_t value = 0;
    static_cast<void>(!read(descriptor_, &value, sizeof(value)));
  }
  void abandon_in_child() override {}

  bool full = false;
  bool silent = false;
  bool armed = false;
  int open_error = 0;
  int open_paths = 0;
  std::size_t room = 4'096;
  std::uint64_t turns = 0;

 private:
  struct Packet {
    std::vector<std::byte> header;
    std::vector<std::byte> payload;
    std::uint16_t count = 1;
  };

  void accept(const TxFrame& frame) {
    Packet packet;
    packet.header.assign(frame.headers().begin(), frame.headers().end());
    for (const ConstBytes piece : frame.payload()) {
      packet.payload.insert(packet.payload.end(), piece.begin(), piece.end());
    }
    packet.count = frame.packet_count;
    queue_.push_back(std::move(packet));
    const std::uint64_t one = 1;
    const posix::Uncancelled whole;
    if (armed) static_cast<void>(!write(descriptor_, &one, sizeof(one)));
  }

  DatapathCapabilities capabilities_{.name = "loopback", .max_path_mtu = 4096};
  DatapathCounters counters_;
  int descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::deque<Packet> queue_;
  std::vector<Packet> lent_;
};

// An uplink that takes whole Ethernet frames, which come back as far as they are asked for.
class FrameLink final : public Datapath {
 public:
  ~FrameLink() override { close(descriptor_); }

  [[nodiscard]] const DatapathCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] const DatapathCounters& counters() const override { return counters_; }
  [[nodiscard]] int open_path(Path&, Qpn) override { return EHOSTUNREACH; }
  void close_path(Path&) override {}
  void lend_frames(Frames which) override { lent_kind = which; }
  [[nodiscard]] std::size_t rx_burst(std::span<RxPacket> packets) override {
    lent_.clear();
    const std::size_t n = std::min(packets.size(), frames.size());
    for (std::size_t i = 0; i < n; ++i) {
      lent_.push_back(std::move(frames.front()));
      frames.pop_front();
    }
    if (lent_kind == Frames::kNone) return 0;
    for (std::size_t i = 0; i < n; ++i) {
      packets[i] = RxPacket{};
      packets[i].bytes = ConstBytes(lent_[i]).first(0);
      packets[i].frame_bytes_behind = static_cast<std::uint16_t>(lent_[i].size());
    }
    return n;
  }
  std::size_t tx_burst(std::span<TxFrame> sent) override {
    for (const TxFrame& frame : sent) {
      std::vector<std::byte>& copy = frames.emplace_back();
      for (const ConstBytes piece : frame.payload()) {
        copy.insert(copy.end(), piece.begin(), piece.end());
      }
    }
    return 0;
  }
  void on_turn(Instant) override {}
  [[nodiscard]] int wakeup_descriptor() const override { return descriptor_; }
  [[nodiscard]] bool arm_wakeup() override { return frames.empty(); }
  void disarm_wakeup() override {}
  void abandon_in_child() override {}

  Frames lent_kind = Frames::kNone;
  std::deque<std::vector<std::byte>> frames;

 private:
  DatapathCapabilities capabilities_{.name = "frames", .max_frame_bytes = 1'514};
  DatapathCounters counters_;
  int descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::vector<std::vector<std::byte>> lent_;
};

// What a test keeps of an engine's parts.
struct FakeParts {
  FakeBlocks* blocks = nullptr;
  LoopbackLink* local = nullptr;
  bool wants_frames = false;
  FrameLink* uplink = nullptr;  // if it does
};

inline EngineParts make_fake_parts(FakeParts& fakes) {
  EngineParts parts;
  auto blocks = std::make_unique<FakeBlocks>();
  auto local = std::make_unique<LoopbackLink>();
  fakes.blocks = blocks.get();
  fakes.local = local.get();
  if (fakes.wants_frames) {
    auto uplink = std::make_unique<FrameLink>();
    fakes.uplink = uplink.get();
    parts.links[transport::kUplink] = std::move(uplink);
  }
  parts.blocks = std::move(blocks);
  parts.links[transport::kLocalLink] = std::move(local);
  host::TreeDevice device{
      .name = "uroce0", .netdev = "test0", .interface_index = 0, .node_guid = 0x1234, .gids = {}};
  device.gids.set_slot(0, test_gid(1));
  host::Interface interface;
  interface.name = "test0";
  interface.mtu_bytes = 9'000;
  interface.up = interface.running = true;
  parts.port = std::make_unique<Port>(
      std::nullopt, std::move(device),
      host::HostNetwork{.interfaces = {interface}, .default_route = "test0"});
  return parts;
}

}  // namespace uroce::engine
