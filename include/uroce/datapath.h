// SPDX-License-Identifier: BSD-2-Clause
// The contract between the transport and whatever carries its packets: shared memory, UDP sockets,
// a DPDK port, or a wrapper round one of these (pcap, fault injection).
//
// Threads: every call is made by whoever holds the shard's lock, so an implementation needs no lock
// of its own towards the engine. Only `wakeup_descriptor` is polled by a thread without the lock.
// No call may block, allocate without bound, or log on the way of a packet.
//
//   RxPacket in[32];
//   for (std::size_t n; (n = link.rx_burst(in)) != 0;) core.on_packets(now, kUplink, {in, n});
//   core.poll_transmit(now, kUplink, burst);
//   link.tx_burst(burst.frames());      // sets `refused` in those it could not take
//
// Wrong: keeping an RxPacket (or a span into it) over the next rx_burst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "uroce/ids.h"
#include "uroce/packet.h"
#include "uroce/time.h"

namespace uroce {

struct DatapathCapabilities {
  const char* name = "";                // "shm", "udp", "dpdk"
  std::uint16_t max_path_mtu = 1024;    // payload bytes of one packet: 256, 512, 1024, 2048 or 4096
  std::uint16_t max_run_packets = 1;    // a frame may stand for so many packets ...
  std::uint32_t max_run_bytes = 0;      // ... and carry so many bytes of payload
  std::uint32_t peer_window_bytes = 0;  // unacknowledged bytes a peer's receive buffer holds; 0:
                                        // the link refuses frames by itself instead of losing them
  bool trusted_memory = false;          // the link cannot corrupt, lose or reorder
  std::uint16_t max_frame_bytes = 0;    // of an Ethernet frame without FCS and VLAN tag that is
                                        // sent as it is; 0: not on this link
  std::uint64_t bits_per_second = 0;    // of the interface, for ibv_query_port; 0 when unknown
};

// Why received datagrams were not handed on; each is counted once. The transport has its own for
// what it drops.
struct DatapathCounters {
  std::uint64_t rx_packets = 0, rx_bytes = 0;
  std::uint64_t tx_packets = 0, tx_bytes = 0;
  std::uint64_t rx_bad_icrc = 0, rx_truncated = 0, rx_not_roce = 0;
  std::uint64_t tx_errors = 0;  // accepted, then lost by the system underneath
  std::uint64_t tx_refused = 0;
  std::uint64_t wakeups_sent = 0;
  std::uint64_t rx_misdelivered = 0;  // for another process's QP, and could not be passed on
  // On purpose, by `uroce run --fault`; a corrupted packet counts as rx_bad_icrc as well.
  std::uint64_t faults_lost = 0, faults_duplicated = 0, faults_reordered = 0;
  std::uint64_t faults_corrupted = 0, faults_delayed = 0;
};

class Datapath {
 public:
  Datapath() = default;
  Datapath(const Datapath&) = delete;
  Datapath& operator=(const Datapath&) = delete;
  virtual ~Datapath() = default;

  [[nodiscard]] virtual const DatapathCapabilities& capabilities() const = 0;
  [[nodiscard]] virtual const DatapathCounters& counters() const = 0;

  // Makes `path` usable towards `destination` and sets `path.route`. 0, or an errno: EHOSTUNREACH
  // where this datapath does not reach the address or the QP, else what the system said.
  [[nodiscard]] virtual int open_path(Path& path, Qpn destination) = 0;
  virtual void close_path(Path& path) = 0;

  // From now on what is sent to this multicast group arrives, also what this process or another of
  // this host sends; called once a group. 0, or an errno. Where all groups arrive anyhow there is
  // nothing to do.
  [[nodiscard]] virtual int join_group(const Gid& /*group*/) { return 0; }
  virtual void leave_group(const Gid& /*group*/) {}

  // Before the first rx_burst of a turn, who takes it: the application, which polls, or the
  // engine's helper. There are turns that nobody announces.
  enum class Turn : std::uint8_t { kApplication, kHelper };
  virtual void begin_turn(Turn) {}
  // The application has asked to be told of a completion, and may wait for it from now on; or it
  // was told.
  virtual void application_waits(bool) {}

  // Fills `packets` from the front and returns how many; 0 when there is nothing.
  [[nodiscard]] virtual std::size_t rx_burst(std::span<RxPacket> packets) = 0;

  // Which Ethernet frames rx_burst lends whole from now on; at first none. Only links with
  // `max_frame_bytes` have any.
  enum class Frames : std::uint8_t {
    kNone,
    kForeign,  // those without a RoCE packet to this end; what this end answers is answered still
    kAll,      // those with one as well
  };
  virtual void lend_frames(Frames) {}

  // Sends the frames in order. A frame that cannot be taken now is marked `refused`, and so is
  // every later one of the burst to the same route; returns how many were refused. What was taken
  // may still be lost where the link is not trusted memory. A frame of trusted memory that was
  // taken is delivered even if this process ends right after.
  virtual std::size_t tx_burst(std::span<TxFrame> frames) = 0;

  // Once a turn, after tx_burst: the chance to wake peers that sleep on what was sent to them.
  virtual void on_turn(Instant now) = 0;

  // A descriptor that becomes readable when something arrives while armed, or -1 where there is no
  // such thing and the engine must look by timer.
  [[nodiscard]] virtual int wakeup_descriptor() const = 0;
  // Before sleeping. False: something is there already, do not sleep.
  [[nodiscard]] virtual bool arm_wakeup() = 0;
  // When a turn is due although nothing arrives: to wake a peer that did not look by itself.
  [[nodiscard]] virtual Instant next_look() const { return Instant::never(); }
  // After sleeping, or instead of it: arrivals need not wake anyone.
  virtual void disarm_wakeup() = 0;

  // The peer's process lives and could run, but has not read what was sent to it: a time-out now
  // says nothing about the connection and must not use up a retry. Never of a process that is
  // stopped (SIGSTOP, a debugger) or dead. Asked when a timer has run out, not per packet.
  [[nodiscard]] virtual bool peer_stalled(const Path& /*path*/) { return false; }

  // In a forked child: closes every descriptor and lock without disturbing the parent's. Nothing
  // but the destructor is called afterwards.
  virtual void abandon_in_child() = 0;
};

}  // namespace uroce
