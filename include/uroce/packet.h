// SPDX-License-Identifier: BSD-2-Clause
// What the transport and a datapath hand each other: frames to send, packets received.
//
// A frame is a *run*: `packet_count` consecutive packets of one message, described by the headers
// of the first, one gather list, and the path MTU. A datapath on a real link expands it
// (wire/run.h); one in shared memory carries it whole, so that a small path MTU costs nothing
// there. A run of one is an ordinary packet.
//
// The opcode in a run's header is that of the run taken as one packet: a run that holds a message's
// beginning and end says ONLY, one that holds its beginning FIRST, its end LAST, neither MIDDLE.
// All packets of a run but its last carry exactly `segment_bytes` of payload.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uroce/ids.h"

namespace uroce {

// BTH and the longest chain of extension headers (RETH + AtomicETH class, FETH, immediate),
// rounded.
inline constexpr std::size_t kMaxHeaderBytes = 64;

// Where a connection's packets go. Owned by the QP (or address handle); a datapath reads it when it
// sends and keeps what it resolved in `route`.
struct Path {
  Gid source;
  Gid destination;
  std::uint32_t flow_label = 0;
  std::uint16_t udp_source_port = 0xc000;  // 0xC000 to 0xFFFF, stable for a connection
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t route = 0;  // belongs to the datapath that opened the path
  Qpn own_qpn{};            // of the QP at this end: a capture shows by it whom a packet is from
};

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

// To send. The gather list refers to registered memory and is read only inside `tx_burst`; neither
// pad bytes nor the ICRC are in it: the datapath adds them, where its link wants them.
struct TxFrame {
  // Null: the payload is a whole Ethernet frame, without FCS, and leaves as it is; only on links
  // that say how long one may be (DatapathCapabilities::max_frame_bytes).
  const Path* path = nullptr;
  Qpn destination_qpn;
  std::uint16_t packet_count = 1;
  std::uint16_t segment_bytes = 0;  // path MTU; payload of every packet of a run but the last
  std::uint32_t payload_bytes = 0;  // of the whole run
  std::uint8_t header_bytes = 0;    // of the first packet: BTH and its extension headers
  bool carries_addresses = false;  // the receiver must learn both GIDs (UD), also on a trusted link
  bool refused = false;            // set by `tx_burst`: not sent, nothing of it will be
  std::uint32_t gather_count = 0;
  const ConstBytes* gather = nullptr;
  std::uint64_t cookie = 0;  // the transport's own: what to do when it is refused
  void* owner = nullptr;     // likewise
  std::array<std::byte, kMaxHeaderBytes> header;

  [[nodiscard]] ConstBytes headers() const { return {header.data(), header_bytes}; }
  [[nodiscard]] std::span<const ConstBytes> payload() const { return {gather, gather_count}; }
};

// Received: lent by `rx_burst` until its next call.
struct RxPacket {
  ConstBytes bytes;             // from the BTH on; ICRC verified and taken off; pad still there
  ConstBytes detached_payload;  // payload (without pad) where it does not follow the headers
  bool payload_is_detached = false;
  std::uint16_t packet_count = 1;  // more than 1 only on links that carry runs whole
  // Of the Ethernet frame that it came in, where Datapath::lend_frames asked for that: so many
  // bytes lie before `bytes` and so many behind. A frame without a packet for us has no `bytes`.
  std::uint16_t frame_bytes_before = 0;
  std::uint16_t frame_bytes_behind = 0;
  const Gid* source = nullptr;  // null where the link itself vouches for connected peers (shm)
  const Gid* destination = nullptr;
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;

  [[nodiscard]] bool has_frame() const { return (frame_bytes_before | frame_bytes_behind) != 0; }
  [[nodiscard]] ConstBytes frame() const {
    return {bytes.data() - frame_bytes_before,
            frame_bytes_before + bytes.size() + frame_bytes_behind};
  }
};
static_assert(sizeof(RxPacket) == 64);  // one line of the cache

}  // namespace uroce
