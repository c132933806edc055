// SPDX-License-Identifier: BSD-2-Clause
// Packets become blocks of a capture: each packet of a run by itself, complete as on an Ethernet.
//
//   Recorder recorder(file, fast_crc32);
//   recorder.head = {.interface = 0, .time_ns = now, .direction = pcapng::Direction::kOutbound};
//   recorder.record_run(*frame.path, frame);
#pragma once

#include <cstddef>
#include <span>

#include "capture/pcapng.h"
#include "uroce/packet.h"
#include "wire/crc32.h"

namespace uroce::capture {

// Where blocks go.
class Blocks {
 public:
  // Room for so many bytes of whole blocks, which is then taken for filled; null when nothing more
  // is written.
  [[nodiscard]] virtual std::byte* reserve(std::size_t bytes) = 0;

 protected:
  ~Blocks() = default;
};

class Recorder {
 public:
  Recorder(Blocks& blocks, wire::Crc32Function crc) : blocks_(blocks), crc_(crc) {}

  // The frame's own path may be missing.
  void record_run(const Path& path, const TxFrame& frame);
  // A whole Ethernet frame.
  void record_frame(std::span<const ConstBytes> pieces, std::size_t bytes);
  // What is no packet by its own word, as it is.
  void record_bytes(const Path& path, ConstBytes bytes);

  pcapng::PacketHead head;  // of all that is recorded, until it is changed

 private:
  // Room for the packet of a block, whose head and tail are written; null: nothing is captured.
  [[nodiscard]] std::byte* begin_packet(std::size_t bytes);

  Blocks& blocks_;
  wire::Crc32Function crc_;
};

}  // namespace uroce::capture
