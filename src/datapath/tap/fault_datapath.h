// SPDX-License-Identifier: BSD-2-Clause
// A datapath whose packets meet with faults (fault_spec.h), round any other.
//
// Faults are made where packets arrive. There every link looks alike, a packet has one owner, and a
// packet that must wait is copied once and needs nothing of the sender's memory; on the sending
// side a delayed frame would refer to memory that its application may have back by then. So a
// connection suffers in both directions when both ends run with faults, and else in the one towards
// us.
//
// A run that shared memory carries whole is taken apart first: its packets are lost one by one.
// What nothing happens to is handed on as the link lent it. A damaged packet is one that the ICRC
// would have caught, so it is counted there (rx_bad_icrc) and goes no further, whatever is
// configured about the ICRC. Delayed packets stand in one queue and keep their order. A packet that
// falls back in order is held until some others have passed it, or a millisecond longer than any
// delay.
//
// Waiting packets stand in a pool. When it is full no more is taken from the link, which does what
// it does for a slow receiver: shared memory refuses, a window closes. Nothing is lost but by
// chance.
//
// The link loses packets now, and says so (`trusted_memory`); windows and runs stay as they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "datapath/tap/due_timer.h"
#include "datapath/tap/fault_dice.h"
#include "datapath/tap/packet_pool.h"
#include "uroce/datapath.h"
#include "wire/arrived_run.h"

namespace uroce::datapath::tap {

struct FaultOptions {
  FaultSpec spec;
  Instant (*clock)();               // CLOCK_MONOTONIC: by the last turn's time a packet that comes
                                    // after a long sleep would be due before it arrived
  std::size_t pool_packets = 8192;  // that can wait at once
};

class FaultDatapath final : public Datapath {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Datapath>> create(std::unique_ptr<Datapath> link,
                                                                const FaultOptions& options);

  [[nodiscard]] const DatapathCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] const DatapathCounters& counters() const override;
  [[nodiscard]] int open_path(Path& path, Qpn destination) override;
  [[nodiscard]] int join_group(const Gid& group) override { return link_->join_group(group); }
  void leave_group(const Gid& group) override { link_->leave_group(group); }
  void close_path(Path& path) override { link_->close_path(path); }
  void begin_turn(Turn turn) override { link_->begin_turn(turn); }
  void application_waits(bool waits) override { link_->application_waits(waits); }
  void lend_frames(Frames which) override { link_->lend_frames(which); }
  [[nodiscard]] std::size_t rx_burst(std::span<RxPacket> packets) override;
  std::size_t tx_burst(std::span<TxFrame> frames) override { return link_->tx_burst(frames); }
  void on_turn(Instant now) override { link_->on_turn(now); }
  [[nodiscard]] int wakeup_descriptor() const override;
  [[nodiscard]] bool arm_wakeup() override;
  [[nodiscard]] Instant next_look() const override;
  void disarm_wakeup() override;
  [[nodiscard]] bool peer_stalled(const Path& path) override { return link_->peer_stalled(path); }
  void abandon_in_child() override;

 private:
  FaultDatapath(std::unique_ptr<Datapath> link, const FaultOptions& options,
                std::optional<DueTimer> timer);

  // The packet whose turn it is, and how many copies of it are still to be dealt with.
  struct Current {
    RxPacket packet;
    FaultFate fate;
    unsigned copies = 0;
  };

  void take_back_lent();
  [[nodiscard]] bool has_unfinished() const;
  [[nodiscard]] bool refill();
  [[nodiscard]] std::size_t fill(std::span<RxPacket> packets);
  [[nodiscard]] bool next_packet();
  void open_arrival();
  void draw_fate();
  enum class Admitted : std::uint8_t { kHandedOut, kWaits, kNoRoom };
  [[nodiscard]] Admitted admit(RxPacket& out);
  [[nodiscard]] Admitted put_aside(StoredPackets& queue, Instant due);
  [[nodiscard]] StoredPacket* pop_due();
  void note_delivery();
  void find_earliest();

  static constexpr std::size_t kBurst = 32;

  std::unique_ptr<Datapath> link_;
  FaultDice dice_;
  Instant (*clock_)();
  bool uses_time_;
  DatapathCapabilities capabilities_;
  Duration hold_at_most_;
  PacketPool pool_;
  std::optional<DueTimer> timer_;
  bool is_armed_ = false;
  Instant now_{};

  std::array<RxPacket, kBurst> arrivals_;  // as the link lent them
  std::size_t arrival_count_ = 0, next_arrival_ = 0;
  wire::ArrivedRun run_;
  bool is_run_ = false;  // the arrival in hand is one, and lies in run_
  unsigned packets_in_arrival_ = 0, next_in_arrival_ = 0;
  Current current_;
  std::array<std::array<std::byte, kMaxHeaderBytes>, kBurst + 1> headers_;  // of a run's packets
  std::size_t free_header_ = 0;

  StoredPackets delayed_;  // in their order, which is that of their times
  StoredPackets held_;     // until others have passed them
  StoredPackets ready_;    // held ones whose time has come
  StoredPackets lent_;     // until the next rx_burst
  Instant last_due_{};
  Instant earliest_ = Instant::never();  // when something stored is due

  DatapathCounters made_;  // the faults only
  mutable DatapathCounters counters_;
};

}  // namespace uroce::datapath::tap
