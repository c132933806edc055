// SPDX-License-Identifier: BSD-2-Clause
// How a frame lies in a ring.
//
//   0        8       12        14       15      16
//   | stamp  | payload | packet | header | flags | headers | addresses | payload ... | to 64 |
//            |  bytes  | count  | bytes  |       |         | (UD only) |
//
// A record begins on a cache line, so that a small frame is one line: its stamp says that it is
// there, and the receiver waits for the stamp of the record that comes next. No index is handed
// over besides. The stamp depends on the position (which never wraps) and on a random key of the
// ring that only its two ends know, so that neither an older lap nor any payload can be taken for
// one, and the sender never clears what lies ahead.
//
// A record does not wrap; where it does not fit before the end, a skip record fills the rest.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "uroce/packet.h"

namespace uroce::datapath::shm {

inline constexpr std::uint32_t kLineBytes = 64;
inline constexpr std::uint32_t kMinHeaderBytes = 12;  // a BTH

// The second word of a record, written and read whole.
struct RecordSizes {
  std::uint32_t payload_bytes = 0;
  std::uint16_t packet_count = 0;
  std::uint8_t header_bytes = 0;
  std::uint8_t flags = 0;
};
inline constexpr std::uint8_t kCarriesAddresses = 1;
inline constexpr std::uint8_t kSkip = 2;  // nothing more before the end of the ring
static_assert(sizeof(RecordSizes) == sizeof(std::uint64_t));

struct RecordHead {
  std::atomic<std::uint64_t> stamp;
  std::atomic<std::uint64_t> sizes;
};
static_assert(sizeof(RecordHead) == 16);

struct RecordAddresses {
  Gid source;
  Gid destination;
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint16_t unused = 0;
};
static_assert(sizeof(RecordAddresses) == 40);

constexpr std::uint64_t record_stamp(std::uint64_t key, std::uint64_t position) {
  return key ^ (position + 1) * 0x9e37'79b9'7f4a'7c15;
}

// Offsets from the record's beginning.
struct RecordLayout {
  std::uint32_t addresses = 0;
  std::uint32_t payload = 0;
  std::uint32_t total = 0;
};

constexpr std::uint32_t round_to_line(std::uint32_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// Large payloads begin on a line: copies in and out are faster then. `payload_bytes` must be far
// from overflowing 32 bits (the reader checks it against the ring first).
constexpr RecordLayout record_layout(RecordSizes sizes) {
  RecordLayout layout;
  layout.addresses = static_cast<std::uint32_t>(sizeof(RecordHead)) + sizes.header_bytes;
  layout.payload = layout.addresses;
  if ((sizes.flags & kCarriesAddresses) != 0) layout.payload += sizeof(RecordAddresses);
  if (sizes.payload_bytes >= 512) layout.payload = round_to_line(layout.payload);
  layout.total = round_to_line(layout.payload + sizes.payload_bytes);
  return layout;
}
static_assert(record_layout({.payload_bytes = 8, .header_bytes = 32}).total == kLineBytes);

// What both ends keep in front of the records. The head is the receiver's, and the sender looks at
// it only when it believes that the ring is full or the receiver asleep.
struct RingControl {
  alignas(kLineBytes) std::atomic<std::uint64_t> head;  // all before it may be written again
  std::atomic<std::uint32_t> refused;  // the receiver found nonsense and reads no further
  std::atomic<std::uint32_t> adopted;  // the receiver has the ring
};
inline constexpr std::size_t kControlBytes = 4096;

}  // namespace uroce::datapath::shm
