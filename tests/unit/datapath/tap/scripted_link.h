// SPDX-License-Identifier: BSD-2-Clause
// A link whose arrivals a test writes down, burst by burst, and which keeps what is sent. Like a
// real one it takes back what it lent, at the next rx_burst and when it is armed: it overwrites it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "support/arrival.h"
#include "uroce/datapath.h"
#include "wire/bth.h"

namespace uroce::datapath::tap {

using test::Arrival;
using test::ByteVector;
using test::write_run;

inline std::uint32_t psn_of(const RxPacket& packet) {
  return wire::load_bth(packet.bytes.data()).psn().value();
}

class ScriptedLink final : public Datapath {
 public:
  void arrive(std::vector<Arrival> burst) { bursts_.push_back(std::move(burst)); }

  [[nodiscard]] const DatapathCapabilities& capabilities() const override { return can; }
  [[nodiscard]] const DatapathCounters& counters() const override { return counted; }
  [[nodiscard]] int open_path(Path& path, Qpn) override {
    path.route = 5;
    return 0;
  }
  void close_path(Path& path) override { path.route = 0; }
  [[nodiscard]] std::size_t rx_burst(std::span<RxPacket> packets) override {
    take_back();
    if (bursts_.empty()) return 0;
    lent_ = std::move(bursts_.front());
    bursts_.pop_front();
    for (std::size_t i = 0; i < lent_.size(); ++i) {
      packets[i] = RxPacket{};
      if (lent_[i].is_frame) {
        packets[i].bytes = ConstBytes(lent_[i].headers).first(0);
        packets[i].frame_bytes_behind = static_cast<std::uint16_t>(lent_[i].headers.size());
        continue;
      }
      packets[i].bytes = lent_[i].headers;
      packets[i].detached_payload = lent_[i].payload;
      packets[i].payload_is_detached = true;
      packets[i].packet_count = lent_[i].packet_count;
    }
    counted.rx_packets += lent_.size();
    return lent_.size();
  }
  std::size_t tx_burst(std::span<TxFrame> frames) override {
    for (TxFrame& frame : frames) frame.refused = refuses;
    return refuses ? frames.size() : 0;
  }
  void on_turn(Instant) override { ++turns; }
  [[nodiscard]] int wakeup_descriptor() const override { return descriptor; }
  [[nodiscard]] bool arm_wakeup() override {
    take_back();
    return is_armed = bursts_.empty();
  }
  void disarm_wakeup() override { is_armed = false; }
  void abandon_in_child() override { is_abandoned = true; }

  DatapathCapabilities can{
      .name = "scripted", .max_path_mtu = 4096, .max_run_packets = 256, .trusted_memory = true};
  DatapathCounters counted;
  int descriptor = -1;
  int turns = 0;
  bool refuses = false;
  bool is_armed = false;
  bool is_abandoned = false;

 private:
  void take_back() {
    for (Arrival& arrival : lent_) {
      std::ranges::fill(arrival.headers, std::byte{0xdd});
      std::ranges::fill(arrival.payload, std::byte{0xdd});
    }
    lent_.clear();
  }

  std::deque<std::vector<Arrival>> bursts_;
  std::vector<Arrival> lent_;
};

}  // namespace uroce::datapath::tap
