// SPDX-License-Identifier: BSD-2-Clause
// Sends bursts of frames over the sending sockets, and decides what a refusal of the system means:
//
//   no buffer just now   what has not begun is refused, and the transport keeps it; the rest of a
//                        frame cut in the middle is lost, as a network may lose packets
//   will not cut         (no checksum offload, or a device without the feature) the route goes on
//                        packet by packet, this one included; nothing is lost. If it takes no
//                        packet by itself either, it was not that: there is no source address just
//                        now
//   anything else        (too long for the device, filtered, no route just now) lost and counted
#pragma once

#include <cstddef>
#include <span>

#include "datapath/udp/route.h"
#include "datapath/udp/send_batch.h"
#include "uroce/datapath.h"
#include "uroce/packet.h"

namespace uroce::datapath::udp {

class Sender {
 public:
  Sender(RouteTable& routes, DatapathCounters& counters) : routes_(routes), counters_(counters) {}

  // As Datapath::tx_burst.
  std::size_t send(std::span<TxFrame> frames);

 private:
  enum class Outcome { kSent, kAgain, kRefused };

  void fill(std::span<TxFrame> frames, PacketPosition& next);
  bool fill_frame(const TxFrame& frame, Route& route, PacketPosition& next);
  Outcome flush(PacketPosition& next);
  Outcome react(int error, const SendBatch::Message& message, PacketPosition& next);
  void count_sent(std::size_t first, std::size_t count);
  std::size_t refuse(std::span<TxFrame> frames, PacketPosition next);

  RouteTable& routes_;
  DatapathCounters& counters_;
  SendBatch batch_;
};

}  // namespace uroce::datapath::udp
