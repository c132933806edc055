// SPDX-License-Identifier: BSD-2-Clause
// A datapath that writes down every packet, sent and received, round any other: what a capture on
// the wire would show to somebody at this end. A run that the link carries whole becomes the
// packets that it stands for; each bears IP and UDP headers and an ICRC, also where the link has
// none.
//
// It stands outside of made-up faults (fault_datapath.h), which are the network's: what is lost
// there is in the sender's capture and not in the receiver's, as it would be.
//
// Shared memory says of a connection's packet only to which of our QPs it goes. The addresses are
// those of the QP's path the other way round, which was seen when it was opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "capture/recorder.h"
#include "datapath/tap/capture_file.h"
#include "uroce/datapath.h"
#include "wire/arrived_run.h"

namespace uroce::datapath::tap {

class CaptureDatapath final : public Datapath {
 public:
  // `name` is the interface's in the capture; several may share `file`, under one lock. `clock`
  // counts nanoseconds since 1970.
  CaptureDatapath(std::unique_ptr<Datapath> link, std::shared_ptr<CaptureFile> file,
                  const std::string& name, std::uint64_t (*clock)());

  [[nodiscard]] const DatapathCapabilities& capabilities() const override {
    return link_->capabilities();
  }
  [[nodiscard]] const DatapathCounters& counters() const override { return link_->counters(); }
  [[nodiscard]] int open_path(Path& path, Qpn destination) override;
  [[nodiscard]] int join_group(const Gid& group) override { return link_->join_group(group); }
  void leave_group(const Gid& group) override { link_->leave_group(group); }
  void close_path(Path& path) override { link_->close_path(path); }
  void begin_turn(Turn turn) override { link_->begin_turn(turn); }
  void application_waits(bool waits) override { link_->application_waits(waits); }
  void lend_frames(Frames which) override { link_->lend_frames(which); }
  [[nodiscard]] std::size_t rx_burst(std::span<RxPacket> packets) override;
  std::size_t tx_burst(std::span<TxFrame> frames) override;
  void on_turn(Instant now) override;
  [[nodiscard]] int wakeup_descriptor() const override { return link_->wakeup_descriptor(); }
  [[nodiscard]] bool arm_wakeup() override { return link_->arm_wakeup(); }
  [[nodiscard]] Instant next_look() const override { return link_->next_look(); }
  void disarm_wakeup() override { link_->disarm_wakeup(); }
  [[nodiscard]] bool peer_stalled(const Path& path) override { return link_->peer_stalled(path); }
  void abandon_in_child() override;

 private:
  void record_arrival(const RxPacket& packet);
  [[nodiscard]] Path path_of(const RxPacket& packet, Qpn to) const;

  std::unique_ptr<Datapath> link_;
  std::shared_ptr<CaptureFile> file_;
  std::uint64_t (*clock_)();
  capture::Recorder recorder_;
  wire::ArrivedRun run_;
  // By the low bits of our QP's number; a QP that shares them with a later one shows the latter's.
  std::unique_ptr<Path[]> paths_;
};

}  // namespace uroce::datapath::tap
