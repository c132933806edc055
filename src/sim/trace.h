// SPDX-License-Identifier: BSD-2-Clause
// What happened, as a hash of it all and, where somebody wants to read it, as lines of text and as
// a capture. The same seed gives the same hash on every machine; nothing that goes in is an
// address.
#pragma once

#include <cstdint>
#include <cstdio>

#include "sim/capture.h"
#include "uroce/packet.h"
#include "uroce/time.h"

namespace uroce::sim {

class Trace {
 public:
  void note(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x9fb2'1c65'1e98'df25;
    hash_ ^= hash_ >> 32;
  }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }

  // Null: nobody reads along.
  void print_to(std::FILE* out) { out_ = out; }
  [[nodiscard]] bool is_read() const { return out_ != nullptr; }
  void capture_to(Capture* capture) { capture_ = capture; }
  [[nodiscard]] bool is_captured() const { return capture_ != nullptr; }

  // A packet leaves for another node; `fate`: what becomes of it, if it does not just arrive.
  void sent(Instant now, unsigned from, unsigned to, const RxPacket& packet, const char* fate) {
    packet_line(now, from, to, packet, fate != nullptr ? fate : "sent");
    if (is_captured()) [[unlikely]]
      capture_->sent(now, from, to, packet, fate != nullptr ? fate : "");
  }
  // It has come, and was taken; only captures show that.
  void arrived(Instant now, unsigned from, unsigned to, const RxPacket& packet) {
    capture_->arrived(now, from, to, packet, "");
  }
  // It has come, and was not.
  void dropped(Instant now, unsigned from, unsigned to, const RxPacket& packet, const char* fate) {
    packet_line(now, from, to, packet, fate);
    if (is_captured()) [[unlikely]]
      capture_->arrived(now, from, to, packet, fate);
  }
  [[gnu::format(printf, 3, 4)]] void line(Instant now, const char* format, ...);

 private:
  void packet_line(Instant now, unsigned from, unsigned to, const RxPacket& packet,
                   const char* fate) {
    note_packet(now, from, to, packet, fate);
    if (is_read()) [[unlikely]]
      print_packet(now, from, to, packet, fate);
  }
  void note_packet(Instant now, unsigned from, unsigned to, const RxPacket& packet,
                   const char* fate);
  void print_packet(Instant now, unsigned from, unsigned to, const RxPacket& packet,
                    const char* fate);

  std::uint64_t hash_ = 0x243f'6a88'85a3'08d3;
  std::FILE* out_ = nullptr;
  Capture* capture_ = nullptr;
};

}  // namespace uroce::sim
