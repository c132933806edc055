// SPDX-License-Identifier: BSD-2-Clause
#include "capture/pcapng.h"

#include <algorithm>
#include <cstring>

namespace uroce::capture::pcapng {
namespace {

constexpr std::uint32_t kSectionBlock = 0x0a0d'0d0a;
constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b'3c4d;
constexpr std::uint16_t kEthernet = 1;

constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kApplication = 4;     // of a section
constexpr std::uint16_t kName = 2;            // of an interface
constexpr std::uint16_t kTimeResolution = 9;  // of an interface
constexpr std::uint16_t kFlags = 2;           // of a packet

constexpr std::size_t kPacketHeadBytes = 28;
constexpr std::size_t kPacketTailBytes = 16;  // flags, end of options, the length again
constexpr std::size_t kOptionHeadBytes = 4;

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

template <typename Value>
std::byte* put(std::byte* to, Value value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

std::byte* put_padded(std::byte* to, const void* data, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, data, bytes);
  std::fill_n(to + bytes, padded(bytes) - bytes, std::byte{0});
  return to + padded(bytes);
}

std::byte* put_option(std::byte* to, std::uint16_t code, const void* data, std::size_t bytes) {
  to = put(to, code);
  to = put(to, static_cast<std::uint16_t>(bytes));
  return put_padded(to, data, bytes);
}

std::byte* put_text(std::byte* to, std::uint16_t code, std::string_view text) {
  return put_option(to, code, text.data(), std::min(text.size(), kNameBytesMax));
}

std::size_t comment_bytes(std::string_view comment) {
  if (comment.empty()) return 0;
  return kOptionHeadBytes + padded(std::min(comment.size(), kNameBytesMax));
}

// Ends the options and the block, which begins at `block`, and fills in its length.
std::byte* end_block(std::byte* block, std::byte* at) {
  at = put_option(at, kEndOfOptions, nullptr, 0);
  const auto bytes = static_cast<std::uint32_t>(at + sizeof(std::uint32_t) - block);
  put(block + sizeof(std::uint32_t), bytes);
  return put(at, bytes);
}

}  // namespace

std::byte* put_section(std::byte* to, std::string_view application) {
  std::byte* at = put(to, kSectionBlock);
  at = put(at, std::uint32_t{0});
  at = put(at, kByteOrderMagic);
  at = put(at, std::uint16_t{1});  // version 1.0
  at = put(at, std::uint16_t{0});
  at = put(at, ~std::uint64_t{0});  // of a length that is not known yet
  return end_block(to, put_text(at, kApplication, application));
}

std::byte* put_interface(std::byte* to, std::string_view name) {
  const std::uint8_t nanoseconds = 9;  // digits
  std::byte* at = put(to, kInterfaceBlock);
  at = put(at, std::uint32_t{0});
  at = put(at, kEthernet);
  at = put(at, std::uint16_t{0});
  at = put(at, std::uint32_t{0});  // packets are never cut
  at = put_text(at, kName, name);
  return end_block(to, put_option(at, kTimeResolution, &nanoseconds, sizeof nanoseconds));
}

std::size_t packet_block_bytes(const PacketHead& head, std::size_t packet_bytes) {
  return kPacketHeadBytes + padded(packet_bytes) + comment_bytes(head.comment) + kPacketTailBytes;
}

std::byte* put_packet_head(std::byte* block, const PacketHead& head, std::size_t packet_bytes) {
  std::byte* at = put(block, kPacketBlock);
  at = put(at, static_cast<std::uint32_t>(packet_block_bytes(head, packet_bytes)));
  at = put(at, head.interface);
  at = put(at, static_cast<std::uint32_t>(head.time_ns >> 32));
  at = put(at, static_cast<std::uint32_t>(head.time_ns));
  at = put(at, static_cast<std::uint32_t>(packet_bytes));
  return put(at, static_cast<std::uint32_t>(packet_bytes));
}

std::byte* put_packet_tail(std::byte* block, const PacketHead& head, std::size_t packet_bytes) {
  std::byte* at = block + kPacketHeadBytes + packet_bytes;
  at = std::fill_n(at, padded(packet_bytes) - packet_bytes, std::byte{0});
  if (!head.comment.empty()) at = put_text(at, kComment, head.comment);
  at = put_option(at, kFlags, &head.direction, sizeof head.direction);
  return end_block(block, at);
}

std::size_t whole_blocks(const std::byte* blocks, std::size_t bytes) {
  std::size_t whole = 0;
  while (bytes - whole >= 2 * sizeof(std::uint32_t)) {
    std::uint32_t length = 0;
    std::memcpy(&length, blocks + whole + sizeof length, sizeof length);
    if (length > bytes - whole) break;
    whole += length;
  }
  return whole;
}

}  // namespace uroce::capture::pcapng
