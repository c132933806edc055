// SPDX-License-Identifier: BSD-2-Clause
// A run that a link carried whole, as the packets that a wire would have carried. It is made a
// frame again, so that the rules of wire/run.h, by which senders take runs apart, hold here too.
//
//   ArrivedRun run;
//   if (!run.open(arrived)) return hand_on(arrived);   // no run by its own word; not ours to judge
//   for (unsigned i = 0; i < run.packet_count(); ++i) hand_on(run.packet(i, headers[i]));
//
// The path MTU is not said, and need not be: of the powers of two, only one cuts so many bytes into
// so many packets.
#pragma once

#include <cstddef>
#include <span>

#include "uroce/packet.h"

namespace uroce::wire {

class ArrivedRun {
 public:
  ArrivedRun() = default;
  ArrivedRun(const ArrivedRun&) = delete;  // the frame refers to us
  ArrivedRun& operator=(const ArrivedRun&) = delete;

  // False where it cannot be taken apart: not well-formed, or no message has such a run. The
  // headers are copied before they are looked at, since a peer may change what lies in shared
  // memory.
  [[nodiscard]] bool open(const RxPacket& arrived);

  [[nodiscard]] unsigned packet_count() const { return frame_.packet_count; }
  // Packet `index` by itself; its headers are written to `headers`, which must live as long.
  [[nodiscard]] RxPacket packet(unsigned index,
                                std::span<std::byte, kMaxHeaderBytes> headers) const;
  // All of it, as it was sent; without a path.
  [[nodiscard]] const TxFrame& frame() const { return frame_; }

 private:
  RxPacket arrived_;
  ConstBytes payload_;
  TxFrame frame_;
};

}  // namespace uroce::wire
