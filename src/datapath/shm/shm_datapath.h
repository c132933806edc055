// SPDX-License-Identifier: BSD-2-Clause
// Peers on the same host. Between each ordered pair of engines that talk there is a ring in shared
// memory (record.h), made when the sender first opens a path; one frame in it is a whole run of
// packets. A process may talk to itself, and so may its devices, by the same way.
//
//   Result<std::unique_ptr<ShmDatapath>> made = ShmDatapath::create(directory, {});
//   if (int error = (*made)->open_path(path, peer_qpn); error == EHOSTUNREACH) use_the_uplink();
//
// Wrong: opening a path because the QPN is known here. QPNs are unique on this host only, so the
// caller first sees to it that the path's destination is an address of this host.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "datapath/directory/directory.h"
#include "datapath/shm/control_socket.h"
#include "datapath/shm/inbound.h"
#include "datapath/shm/outbound.h"
#include "datapath/shm/wakeup.h"
#include "uroce/datapath.h"

namespace uroce::datapath {

struct ShmOptions {
  // A power of two, at least 4 * max_run_bytes. Measured with frames of 64 KiB where both cores
  // share a cache: 256 KiB 10 GB/s, 1 MiB 14 to 18, 2 MiB 19 to 24, 4 MiB 13 to 19.
  std::uint32_t ring_bytes = 2u << 20;
  std::uint32_t max_run_bytes = 64u << 10;
  // A peer that is awake but reads nothing for so long is woken: its program computes.
  Duration wake_after = microseconds(10);
  DatapathCounters* counters = nullptr;  // where it counts, outliving it; null: its own
};

class ShmDatapath final : public Datapath {
 public:
  // `directory` outlives the datapath.
  static Result<std::unique_ptr<ShmDatapath>> create(Directory& directory,
                                                     const ShmOptions& options);
  ~ShmDatapath() override;

  [[nodiscard]] const DatapathCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] const DatapathCounters& counters() const override { return counters_; }
  [[nodiscard]] int open_path(Path& path, Qpn destination) override;
  void close_path(Path& path) override;
  void begin_turn(Turn turn) override;
  void application_waits(bool waits) override;
  [[nodiscard]] std::size_t rx_burst(std::span<RxPacket> packets) override;
  std::size_t tx_burst(std::span<TxFrame> frames) override;
  void on_turn(Instant now) override;
  [[nodiscard]] int wakeup_descriptor() const override { return control_.descriptor(); }
  [[nodiscard]] bool arm_wakeup() override;
  [[nodiscard]] Instant next_look() const override;
  void disarm_wakeup() override;
  [[nodiscard]] bool peer_stalled(const Path& path) override;
  void abandon_in_child() override;

 private:
  ShmDatapath(Directory& directory, const ShmOptions& options, shm::ControlSocket control);

  [[nodiscard]] shm::Outbound* outbound_of(const Path& path);
  [[nodiscard]] shm::Outbound* find_open(SlotHandle peer);
  shm::Outbound& closed_outbound();
  [[nodiscard]] bool find_everybody();
  void keep_everybody(Instant now);
  void touch(shm::Outbound& to);
  void send_one(TxFrame& frame);
  void send_to_all(TxFrame& frame);
  void release_lent();
  std::size_t read_ring(shm::Inbound& from, std::span<RxPacket> packets, std::size_t filled);
  void hand_out(const shm::Record& record, RxPacket& packet, std::size_t index);
  [[gnu::cold]] void take_offers();
  [[gnu::cold]] void take(const shm::ControlSocket::Received& received);
  [[gnu::cold]] void let_go_of_the_gone();
  [[nodiscard]] bool has_news() const;

  // Rings looked at in one rx_burst that has found something, and packets lent by one.
  static constexpr std::size_t kRingsPerPoll = 16;
  static constexpr std::size_t kLargestBurst = 64;

  Directory& directory_;
  const ShmOptions options_;
  DatapathCapabilities capabilities_;
  DatapathCounters own_counters_;
  DatapathCounters& counters_;
  shm::ControlSocket control_;
  Mailbox& mailbox_;
  shm::SleepState sleep_;

  // Never shrink: what is closed is used again, so that nothing is freed under the engine's lock.
  std::vector<std::unique_ptr<shm::Outbound>> outbound_;  // path.route - 1 is the index
  std::vector<std::unique_ptr<shm::Inbound>> inbound_;
  std::vector<shm::Outbound*> touched_, watched_;
  std::vector<shm::Inbound*> lent_;

  // Multicast: what is sent to a group goes to everybody, who know who of them is in it.
  static constexpr std::uint32_t kRouteToAll = UINT32_MAX;
  static constexpr Duration kMissingPause = milliseconds(10);
  std::vector<shm::Outbound*> everybody_;
  std::uint64_t everybody_epoch_ = 0;
  bool is_somebody_missing_ = false;
  Instant look_for_missing_at_{};
  std::uint32_t group_paths_ = 0;

  bool is_helpers_turn_ = false;
  std::size_t next_ring_ = 0;
  std::uint64_t burst_ = 0;
  std::uint32_t bell_seen_ = 0;
  std::uint64_t epoch_seen_ = 0;
  std::uint64_t refused_now_ = 0;
  std::array<shm::RecordAddresses, kLargestBurst> addresses_;
};

}  // namespace uroce::datapath
