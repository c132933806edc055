// SPDX-License-Identifier: BSD-2-Clause
// Frames for the tests of a datapath that stands alone: WRITE runs with a payload that tells where
// each byte belongs, and what must come out at the other end.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "uroce/datapath.h"
#include "wire/build.h"
#include "wire/headers.h"
#include "wire/parse.h"

namespace uroce::datapath {

inline Gid ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}};
}

inline std::vector<std::byte> make_payload(std::size_t bytes, unsigned seed = 1) {
  std::vector<std::byte> payload(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    payload[i] = static_cast<std::byte>((i * 2654435761u + seed * 40503u) >> 11);
  }
  return payload;
}

// A WRITE of one message; the payload must outlive it.
struct WriteRun {
  WriteRun(const Path& path, const std::vector<std::byte>& payload, std::uint16_t mtu,
           std::uint32_t psn)
      : gather{payload.data(), payload.size()} {
    frame.path = &path;
    frame.packet_count = payload.empty()
                             ? std::uint16_t{1}
                             : static_cast<std::uint16_t>((payload.size() + mtu - 1) / mtu);
    frame.segment_bytes = mtu;
    frame.payload_bytes = static_cast<std::uint32_t>(payload.size());
    wire::build(
        frame,
        wire::Bth{.opcode = wire::Opcode::kRcWriteOnly,
                  .destination = Qpn{0x112233},
                  .ack_request = true,
                  .psn = Psn(psn)},
        wire::Reth{.virtual_address = 0x1000, .rkey = RKey{7}, .dma_bytes = frame.payload_bytes});
    if (!payload.empty()) {
      frame.gather = &gather;
      frame.gather_count = 1;
    }
  }
  ConstBytes gather;
  TxFrame frame;
};

// Turns both ends until `payload` has come out of `receiver`, or until patience ends; returns what
// came. Packets that are lost leave a hole, so the caller compares.
class Collector {
 public:
  explicit Collector(Datapath& link) : link_(link) {}

  void turn(Instant now) {
    std::array<RxPacket, 32> packets;
    const std::size_t count = link_.rx_burst(packets);
    for (std::size_t i = 0; i < count; ++i) take(packets[i]);
    link_.on_turn(now);
  }

  std::vector<std::byte> payload;
  std::vector<std::uint32_t> psns;
  std::vector<wire::Opcode> opcodes;
  Gid source;
  unsigned unparsable = 0;

 private:
  void take(const RxPacket& packet) {
    wire::PacketView view;
    if (wire::parse(packet, view) != wire::DropReason::kNone) {
      ++unparsable;
      return;
    }
    payload.insert(payload.end(), view.payload.begin(), view.payload.end());
    psns.push_back(view.bth.psn.value());
    opcodes.push_back(view.bth.opcode);
    source = *packet.source;
  }

  Datapath& link_;
};

inline Instant real_now() {
  return {std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)};
}

// Turns until `done` or for ten seconds; says which.
template <typename Turn, typename Done>
bool turn_until(Turn turn, Done done) {
  const Instant deadline = real_now() + milliseconds(10'000);
  while (!done()) {
    const Instant now = real_now();
    if (deadline < now) return false;
    turn(now);
  }
  return true;
}

// Sends one frame, again and again while it is refused.
inline bool send_all(Datapath& link, TxFrame& frame) {
  return turn_until([&](Instant now) { link.on_turn(now); },
                    [&] {
                      frame.refused = false;
                      return link.tx_burst({&frame, 1}) == 0;
                    });
}

}  // namespace uroce::datapath
