// SPDX-License-Identifier: BSD-2-Clause
// One direction of a link: how long a packet takes, and whether it arrives at all, once, whole and
// in order. The sender sees it as a transmit queue that may be full, the receiver as packets.
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "sim/world.h"

namespace uroce::sim {

// What happens to single packets, counted over all links that share it; for who tries out every
// possibility in turn.
struct Script {
  std::uint64_t losses = 0;  // bit i: packet i is lost
  unsigned repeated = ~0U;   // this one arrives twice
  unsigned late = ~0U;       // ... and this one late
  Duration late_by{};
  unsigned next = 0;  // packets so far
};

// Chances are per million packets; 0 turns a fault off, and its dice are not thrown.
struct LinkOptions {
  bool is_memory = false;  // carries runs whole, and neither loses, changes nor reorders
  Duration delay = microseconds(1);
  Duration jitter{};                     // at most so much more, evenly
  bool keeps_order = true;               // the jitter does not let packets overtake
  std::uint64_t bits_per_second = 0;     // 0: takes no time
  std::uint32_t queue_bytes = 64 << 10;  // wait to leave before frames are refused
  std::uint32_t ring_records = 256;      // ... of memory: not yet read
  std::uint32_t switch_bytes_max = 0;    // what more is on its way in a switch is lost; 0: no limit
  std::uint32_t packet_bytes_max = 0;    // the link's MTU, from the BTH on; 0: no limit
  std::uint32_t loss = 0;
  std::uint32_t burst_begins = 0;  // bursts of loss (Gilbert, Elliott): into the bad state,
  std::uint32_t burst_ends = 0;    // ... out of it,
  std::uint32_t burst_loss = 0;    // ... and what is lost in it
  std::uint32_t duplicate = 0;
  std::uint32_t reorder = 0;  // so many are late by up to `reorder_delay`
  Duration reorder_delay{};
  std::uint32_t corrupt = 0;  // one bit of so many is turned
  Duration blackout_every{};  // nothing arrives for `blackout` each time; 0: never
  Duration blackout{};
  Script* script = nullptr;
};

struct LinkCounters {
  std::uint64_t packets = 0, lost = 0, overflowed = 0, corrupted = 0, duplicated = 0, late = 0;
  std::uint64_t undetected = 0;  // corrupted, and the ICRC was right all the same
};

class Link {
 public:
  Link(World& world, const LinkOptions& options, Prng prng, unsigned from, unsigned to,
       EventSink& receiver);

  [[nodiscard]] const LinkOptions& options() const { return options_; }
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  [[nodiscard]] unsigned source() const { return from_; }

  // Another frame can be taken.
  [[nodiscard]] bool has_room() const;
  // Takes over the packet.
  void send(PacketId packet);
  // The receiver is done with one that came over here.
  void on_consumed() { ++consumed_; }
  // Faults stop; delay and rate stay.
  void heal();

 private:
  [[nodiscard]] std::uint64_t bytes_until(Instant when) const;
  [[nodiscard]] Instant leave(std::uint32_t bytes);
  void send_as_written(PacketId packet, Instant left);
  [[nodiscard]] Instant arrival_after(Instant left);
  [[nodiscard]] const char* fault_of(PacketId packet, Instant left);
  [[nodiscard]] bool is_lost();
  [[nodiscard]] bool is_in_blackout(Instant at) const;
  [[nodiscard]] bool survives_corruption(PacketId packet);
  void drop(PacketId packet, const char* why);

  World& world_;
  LinkOptions options_;
  Prng loss_, delay_, damage_;
  unsigned from_, to_;
  EventSink& receiver_;
  LinkCounters counters_;
  Instant free_at_{};       // when the last packet sent has left
  Instant last_arrival_{};  // of those in order
  bool is_in_burst_ = false;
  std::uint64_t sent_ = 0, consumed_ = 0;  // over memory
};

}  // namespace uroce::sim
