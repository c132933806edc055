// SPDX-License-Identifier: BSD-2-Clause
// One burst of frames on its way from the core to a datapath, with the pool that their gather lists
// lie in. Reused turn after turn; owned by the engine (or the simulator).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "uroce/packet.h"

namespace uroce::transport {

class TxBurst {
 public:
  static constexpr std::size_t kFrames = 32;
  static constexpr std::size_t kPieces = 512;  // room for a frame of 64 SGEs at any fill

  void clear() { frame_count_ = piece_count_ = 0; }
  [[nodiscard]] bool is_full() const {
    return frame_count_ == kFrames || piece_count_ + 64 > kPieces;
  }
  [[nodiscard]] bool empty() const { return frame_count_ == 0; }
  [[nodiscard]] std::span<TxFrame> frames() { return {frames_.data(), frame_count_}; }

  // The frame to fill next; it counts from `commit` on.
  [[nodiscard]] TxFrame& next() {
    TxFrame& frame = frames_[frame_count_];
    frame.packet_count = 1;
    frame.carries_addresses = false;
    frame.refused = false;
    frame.gather_count = 0;
    frame.payload_bytes = 0;
    return frame;
  }
  // The same again, as it was filled so far.
  [[nodiscard]] TxFrame& filled() { return frames_[frame_count_]; }
  [[nodiscard]] std::span<ConstBytes> free_pieces() {
    return {pieces_.data() + piece_count_, kPieces - piece_count_};
  }
  // `pieces`: how many of free_pieces() the frame uses.
  void commit(std::size_t pieces) {
    TxFrame& frame = frames_[frame_count_++];
    frame.gather = pieces_.data() + piece_count_;
    frame.gather_count = static_cast<std::uint32_t>(pieces);
    piece_count_ += pieces;
  }

 private:
  std::size_t frame_count_ = 0;
  std::size_t piece_count_ = 0;
  std::array<TxFrame, kFrames> frames_;
  std::array<ConstBytes, kPieces> pieces_;
};

}  // namespace uroce::transport
