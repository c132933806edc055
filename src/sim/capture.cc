// SPDX-License-Identifier: BSD-2-Clause
#include "sim/capture.h"

#include <string>
#include <utility>

#include "sim/world.h"
#include "wire/crc32.h"

namespace uroce::sim {

using capture::pcapng::Direction;

Capture::Capture(std::FILE* out)
    : out_(out),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kBufferBytes)),
      recorder_(*this, wire::crc32) {}

void Capture::begin(std::uint64_t seed, unsigned nodes) {
  flush();
  std::byte* at =
      capture::pcapng::put_section(buffer_.get(), "uroce-sim, seed " + std::to_string(seed));
  for (unsigned i = 0; i < nodes; ++i) {
    at = capture::pcapng::put_interface(at, "node " + std::to_string(i));
  }
  used_ = static_cast<std::size_t>(at - buffer_.get());
}

void Capture::sent(Instant now, unsigned from, unsigned to, const RxPacket& packet,
                   std::string_view fate) {
  recorder_.head = {.interface = from,
                    .time_ns = static_cast<std::uint64_t>(now.ns),
                    .direction = Direction::kOutbound,
                    .comment = fate};
  record(from, to, packet);
}

void Capture::arrived(Instant now, unsigned from, unsigned to, const RxPacket& packet,
                      std::string_view fate) {
  recorder_.head = {.interface = to,
                    .time_ns = static_cast<std::uint64_t>(now.ns),
                    .direction = Direction::kInbound,
                    .comment = fate};
  record(from, to, packet);
}

bool Capture::finish() {
  flush();
  return std::fflush(out_) == 0 && !has_failed_;
}

void Capture::record(unsigned from, unsigned to, const RxPacket& packet) {
  const Path path{
      .source = address_of(from), .destination = address_of(to), .udp_source_port = kUdpSourcePort};
  if (run_.open(packet)) {
    recorder_.record_run(path, run_.frame());
  } else {
    recorder_.record_bytes(path, packet.bytes);
  }
}

std::byte* Capture::reserve(std::size_t bytes) {
  if (used_ + bytes > kBufferBytes) flush();
  return buffer_.get() + std::exchange(used_, used_ + bytes);
}

void Capture::flush() {
  const std::size_t bytes = std::exchange(used_, 0);
  has_failed_ |= std::fwrite(buffer_.get(), 1, bytes, out_) != bytes;
}

}  // namespace uroce::sim
