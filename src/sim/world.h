// SPDX-License-Identifier: BSD-2-Clause
// The only clock there is, what will happen, the packets on their way, and the record of it.
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "sim/event_queue.h"
#include "sim/packet_pool.h"
#include "sim/trace.h"
#include "uroce/ids.h"
#include "uroce/time.h"

namespace uroce::sim {

class World {
 public:
  explicit World(std::size_t packet_bytes_max) : packets(packet_bytes_max) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] Instant now() const { return now_; }
  void at(Instant when, EventSink& sink, std::uint32_t what) { events_.push(when, sink, what); }
  // The next event happens, if there is one no later than `until`.
  bool step(Instant until) {
    if (events_.empty() || events_.front().when > until) return false;
    const ScheduledEvent event = events_.pop();
    now_ = event.when;
    event.sink->on_event(event.what);
    return true;
  }

  [[nodiscard]] bool is_at_rest() const { return events_.empty(); }

  PacketPool packets;
  Trace trace;
  std::uint64_t packets_sent = 0;  // a run counts as all its packets

 private:
  EventQueue events_;
  Instant now_{1'000'000};
};

// Of all packets; what they are sealed and captured with.
inline constexpr std::uint16_t kUdpSourcePort = 0xc000;

// Node `index` has the address 10.0.0.(index + 1).
constexpr Gid address_of(unsigned index) {
  Gid gid;
  gid.bytes[10] = gid.bytes[11] = 0xff;
  gid.bytes[12] = 10;
  gid.bytes[15] = static_cast<std::uint8_t>(index + 1);
  return gid;
}

// 239.0.0.1: of all datagrams that are for more than one.
constexpr Gid group_address() {
  Gid gid = address_of(0);
  gid.bytes[12] = 239;
  return gid;
}

}  // namespace uroce::sim
