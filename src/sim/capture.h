// SPDX-License-Identifier: BSD-2-Clause
// A run as a capture (pcapng): one section a run, one interface a node. Each holds what the node
// sent, when it sent it and whatever became of it, and what arrived there, when it did; as somebody
// at every node would have captured it, in one file and by one clock. Virtual time begins in 1970.
//
// A packet with a fate of its own bears it as a comment, at the sender's end: "lost", "corrupt",
// "twice"; at the receiver's: "inbox full". (Wireshark: frame.comment.) What is corrupted on the
// way is shown as it was sent; it does not arrive.
//
//   Capture capture(file);
//   capture.begin(seed, nodes);
//   capture.sent(now, 0, 1, packet, "lost");
//   if (!capture.finish()) ...   // the disk is full
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>

#include "capture/recorder.h"
#include "uroce/packet.h"
#include "uroce/time.h"
#include "wire/arrived_run.h"

namespace uroce::sim {

class Capture final : private capture::Blocks {
 public:
  // `out` stays the caller's.
  explicit Capture(std::FILE* out);

  void begin(std::uint64_t seed, unsigned nodes);
  // Between two nodes of the run; `fate` is empty where nothing happened to the packet.
  void sent(Instant now, unsigned from, unsigned to, const RxPacket& packet, std::string_view fate);
  void arrived(Instant now, unsigned from, unsigned to, const RxPacket& packet,
               std::string_view fate);
  // False: not all of it could be written.
  [[nodiscard]] bool finish();

 private:
  [[nodiscard]] std::byte* reserve(std::size_t bytes) override;
  void record(unsigned from, unsigned to, const RxPacket& packet);
  void flush();

  static constexpr std::size_t kBufferBytes = 256u << 10;

  std::FILE* out_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t used_ = 0;
  bool has_failed_ = false;
  capture::Recorder recorder_;
  wire::ArrivedRun run_;
};

}  // namespace uroce::sim
