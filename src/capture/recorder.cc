// SPDX-License-Identifier: BSD-2-Clause
#include "capture/recorder.h"

#include <algorithm>

#include "capture/wire_packet.h"
#include "wire/run.h"

namespace uroce::capture {

void Recorder::record_run(const Path& path, const TxFrame& frame) {
  wire::PayloadCursor payload(frame.payload());
  for (unsigned i = 0; i < frame.packet_count; ++i) {
    const std::size_t bytes = wire_packet_bytes(path, wire::run_packet_bytes(frame, i));
    std::byte* const packet = begin_packet(bytes);
    if (packet == nullptr) return;
    write_wire_packet(path, frame, i, payload, crc_, {packet, bytes});
  }
}

void Recorder::record_bytes(const Path& path, ConstBytes bytes) {
  const std::size_t wire_bytes = wire_packet_bytes(path, bytes.size());
  if (std::byte* const to = begin_packet(wire_bytes); to != nullptr) {
    write_wire_bytes(path, bytes, crc_, {to, wire_bytes});
  }
}

void Recorder::record_frame(std::span<const ConstBytes> pieces, std::size_t bytes) {
  std::byte* to = begin_packet(bytes);
  if (to == nullptr) return;
  for (const ConstBytes piece : pieces) to = std::ranges::copy(piece, to).out;
}

std::byte* Recorder::begin_packet(std::size_t bytes) {
  std::byte* const block = blocks_.reserve(pcapng::packet_block_bytes(head, bytes));
  if (block == nullptr) return nullptr;
  pcapng::put_packet_tail(block, head, bytes);
  return pcapng::put_packet_head(block, head, bytes);
}

}  // namespace uroce::capture
