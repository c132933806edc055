// SPDX-License-Identifier: BSD-2-Clause
// An engine's worth of shared memory datapath, with frames that say their number.
#pragma once

#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "datapath/shm/shm_datapath.h"

namespace uroce::datapath {

// A frame whose header and payload bytes follow from its number, so that a receiver can check it.
class NumberedFrame {
 public:
  NumberedFrame(const Path& path, std::uint32_t number, std::size_t payload_bytes)
      : payload_(payload_bytes) {
    for (std::size_t i = 0; i < payload_bytes; ++i) payload_[i] = byte_of(number, i);
    piece_ = payload_;
    frame_.path = &path;
    frame_.header = {};
    frame_.header_bytes = 28;
    std::memcpy(frame_.header.data(), &number, sizeof number);
    frame_.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    frame_.gather = &piece_;
    frame_.gather_count = 1;
  }
  NumberedFrame(const NumberedFrame&) = delete;
  NumberedFrame& operator=(const NumberedFrame&) = delete;
  TxFrame& frame() { return frame_; }

  static std::uint32_t number_of(const RxPacket& packet) {
    std::uint32_t number = 0;
    std::memcpy(&number, packet.bytes.data(), sizeof number);
    return number;
  }
  static bool is_intact(const RxPacket& packet) {
    const std::uint32_t number = number_of(packet);
    if (packet.bytes.size() != 28 || !packet.payload_is_detached) return false;
    for (std::size_t i = 0; i < packet.detached_payload.size(); ++i) {
      if (packet.detached_payload[i] != byte_of(number, i)) return false;
    }
    return true;
  }

 private:
  static std::byte byte_of(std::uint32_t number, std::size_t i) {
    return static_cast<std::byte>(number * 31 + i * 7 + (i >> 8));
  }
  std::vector<std::byte> payload_;
  ConstBytes piece_;
  TxFrame frame_;
};

class ShmEnd {
 public:
  explicit ShmEnd(const std::string& folder, const ShmOptions& options = {}) {
    auto joined = Directory::join({.folder = folder, .device = "uroce0"});
    if (!joined) die(joined.error());
    directory_ = std::move(*joined);
    auto made = ShmDatapath::create(*directory_, options);
    if (!made) die(made.error());
    link_ = std::move(*made);
    qpn_ = {directory_->claim_block().value_or(0) * kQpnsPerBlock + 7};
  }
  Directory& directory() { return *directory_; }
  ShmDatapath& link() { return *link_; }
  [[nodiscard]] Qpn qpn() const { return qpn_; }

  Path path_to(Qpn qpn) {
    Path path;
    if (link_->open_path(path, qpn) != 0) path.route = 0;
    return path;
  }
  // True if it was taken.
  bool send(const Path& path, std::uint32_t number, std::size_t payload_bytes = 8) {
    NumberedFrame one(path, number, payload_bytes);
    link_->tx_burst({&one.frame(), 1});
    return !one.frame().refused;
  }
  // The numbers of all that is there now; kBroken for a frame that is not as it was sent.
  static constexpr std::uint32_t kBroken = 0xffff'ffff;
  std::vector<std::uint32_t> receive(std::size_t at_most = 1'000'000) {
    std::vector<std::uint32_t> numbers;
    RxPacket packets[32];
    while (numbers.size() < at_most) {
      const std::size_t room = std::min<std::size_t>(32, at_most - numbers.size());
      const std::size_t count = link_->rx_burst(std::span(packets).first(room));
      if (count == 0) break;
      for (std::size_t i = 0; i < count; ++i) {
        numbers.push_back(
            NumberedFrame::is_intact(packets[i]) ? NumberedFrame::number_of(packets[i]) : kBroken);
      }
    }
    return numbers;
  }

 private:
  [[noreturn]] static void die(const Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    ::_exit(2);
  }
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<ShmDatapath> link_;
  Qpn qpn_;
};

}  // namespace uroce::datapath
