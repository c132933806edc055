// SPDX-License-Identifier: BSD-2-Clause
// Blocks of a pcapng file (draft-ietf-opsawg-pcapng), this machine's byte order. A section begins
// with its header, then come its interfaces, numbered as they come, and packets. Sections may
// follow each other, so a file can be gone on with.
//
//   at = put_section(at, "ib_write_bw, process 4711");
//   at = put_interface(at, "uroce0-shm");
//   if (room < packet_block_bytes(head, n)) ...
//   std::byte* packet = put_packet_head(at, head, n);   // here its n bytes go
//   at = put_packet_tail(at, head, n);
//
// Every put_x returns where the next thing goes. The caller sees to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace uroce::capture::pcapng {

inline constexpr std::size_t kNameBytesMax = 128;  // longer ones are cut, and longer comments
// Of put_section and put_interface.
inline constexpr std::size_t kHeadBlockBytesMax = 48 + kNameBytesMax;

std::byte* put_section(std::byte* to, std::string_view application);
// Ethernet frames, times in nanoseconds.
std::byte* put_interface(std::byte* to, std::string_view name);

enum class Direction : std::uint32_t { kInbound = 1, kOutbound = 2 };
struct PacketHead {
  std::uint32_t interface = 0;
  std::uint64_t time_ns = 0;  // since 1970
  Direction direction = Direction::kInbound;
  std::string_view comment{};  // what a reader should know of the packet
};
[[nodiscard]] std::size_t packet_block_bytes(const PacketHead& head, std::size_t packet_bytes);
std::byte* put_packet_head(std::byte* block, const PacketHead& head, std::size_t packet_bytes);
std::byte* put_packet_tail(std::byte* block, const PacketHead& head, std::size_t packet_bytes);

// How many of these bytes, which begin with a block, are whole blocks.
[[nodiscard]] std::size_t whole_blocks(const std::byte* blocks, std::size_t bytes);

}  // namespace uroce::capture::pcapng
