// SPDX-License-Identifier: BSD-2-Clause
// What a scripted peer sends, and the kinds of link that it may sit on.
#pragma once

#include "support/endpoint.h"
#include "wire/build.h"

namespace uroce::test {

inline transport::LinkFacts wire_link() { return {.max_run_packets = 16, .max_run_bytes = 60'000}; }
inline transport::LinkFacts windowed_link() {
  return {.max_run_packets = 16, .max_run_bytes = 60'000, .peer_window_bytes = 32'768};
}
inline transport::LinkFacts memory_link() {
  return {.max_run_packets = 1024, .max_run_bytes = 65'536, .trusted_memory = true};
}

// A packet as the scripted peer makes it.
template <typename... Extensions>
Packet make_packet(wire::Bth bth, std::size_t payload_bytes, const Extensions&... extensions) {
  TxFrame frame;
  frame.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  wire::build(frame, bth, extensions...);
  Packet packet;
  packet.bytes.assign(frame.headers().begin(), frame.headers().end());
  for (std::size_t i = 0; i < payload_bytes; ++i) packet.bytes.push_back(std::byte(i));
  packet.bytes.resize(packet.bytes.size() + wire::pad_bytes_for(frame.payload_bytes));
  return packet;
}

}  // namespace uroce::test
