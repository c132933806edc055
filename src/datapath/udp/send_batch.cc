// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/send_batch.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "datapath/crc/fast_crc32.h"
#include "datapath/udp/icrc_in_place.h"
#include "wire/bth.h"
#include "wire/icrc.h"

namespace uroce::datapath::udp {
namespace {

// What IPv4 allows in one datagram; a train is one until it is cut.
constexpr std::uint32_t kMessageBytesMax = 65'535 - 20 - 8;

}  // namespace

SendBatch::SendBatch()
    : system_(std::make_unique<std::array<mmsghdr, kMessagesMax>>()),
      pieces_(std::make_unique<std::array<iovec, kPiecesMax>>()),
      control_(std::make_unique<std::array<Control, kMessagesMax>>()),
      scratch_(std::make_unique<std::array<std::byte, kScratchBytes>>()) {}

void SendBatch::clear() {
  message_count_ = 0;
  bytes_ = 0;
  piece_count_ = 0;
  scratch_used_ = 0;
}

bool SendBatch::append(const TxFrame& frame, Route& route, PacketPosition position,
                       wire::PayloadCursor& payload) {
  if (!has_room(frame)) return false;
  const std::uint32_t packet_bytes =
      wire::run_packet_bytes(frame, position.packet) + std::uint32_t{wire::kIcrcBytes};
  if (!extends_last(frame, route, packet_bytes) &&
      !start_message(frame, route, position, packet_bytes)) {
    return false;
  }
  write_packet(frame, position.packet, packet_bytes, payload);
  return true;
}

bool SendBatch::has_room(const TxFrame& frame) const {
  constexpr std::size_t kPacketScratchMax =
      kMaxHeaderBytes + kCopiedPayloadMax + wire::kMaxTrailerBytes;
  return piece_count_ + frame.gather_count + 2 <= kPiecesMax &&
         scratch_used_ + kPacketScratchMax <= kScratchBytes;
}

bool SendBatch::extends_last(const TxFrame& frame, const Route& route,
                             std::uint32_t packet_bytes) const {
  if (message_count_ == 0) return false;
  const Message& last = messages_[message_count_ - 1];
  const std::size_t pieces = (*system_)[message_count_ - 1].msg_hdr.msg_iovlen;
  return last.route == &route && last.destination == frame.destination_qpn && !last.is_complete &&
         packet_bytes <= last.segment_bytes && last.packet_count < route.segments_max &&
         last.bytes + packet_bytes <= kMessageBytesMax &&
         pieces + frame.gather_count + 2 <= kPiecesOfMessageMax;
}

bool SendBatch::start_message(const TxFrame& frame, Route& route, PacketPosition position,
                              std::uint32_t packet_bytes) {
  if (message_count_ == kMessagesMax) return false;
  messages_[message_count_] = {.route = &route,
                               .destination = frame.destination_qpn,
                               .first = position,
                               .segment_bytes = packet_bytes};
  msghdr& system = (*system_)[message_count_].msg_hdr;
  Control& control = (*control_)[message_count_];
  std::memcpy(control.bytes.data(), route.control.data(), route.control_bytes);
  system.msg_name = &route.destination;
  system.msg_namelen = route.destination_bytes;
  system.msg_iov = pieces_->data() + piece_count_;
  system.msg_iovlen = 0;
  system.msg_control = control.bytes.data();
  system.msg_controllen = route.control_bytes;
  ++message_count_;
  return true;
}

void SendBatch::write_packet(const TxFrame& frame, unsigned index, std::uint32_t packet_bytes,
                             wire::PayloadCursor& payload) {
  Message& message = messages_[message_count_ - 1];
  // DF on an unconnected socket makes the identification 0, and cutting counts on from there.
  const std::uint32_t icrc_start =
      message.route->flow.start(packet_bytes, static_cast<std::uint16_t>(message.packet_count));
  const std::uint32_t payload_bytes = wire::run_payload_bytes(frame, index);
  const Bytes headers = write_headers(frame, index);
  if (payload_bytes <= kCopiedPayloadMax) {
    copy_payload(headers, payload_bytes, payload, icrc_start);
  } else {
    gather_payload(headers, payload_bytes, payload, icrc_start);
  }
  message.packet_count += 1;
  message.bytes += packet_bytes;
  bytes_ += packet_bytes;
  message.is_complete = packet_bytes < message.segment_bytes;
}

Bytes SendBatch::take_scratch(std::size_t bytes) {
  const Bytes taken(scratch_->data() + scratch_used_, bytes);
  scratch_used_ += bytes;
  return taken;
}

Bytes SendBatch::write_headers(const TxFrame& frame, unsigned index) {
  const std::span<std::byte, kMaxHeaderBytes> room(scratch_->data() + scratch_used_,
                                                   kMaxHeaderBytes);
  return take_scratch(wire::run_headers(frame, index, room));
}

// The whole packet lies in the scratch area, one piece of it.
void SendBatch::copy_payload(Bytes headers, std::uint32_t bytes, wire::PayloadCursor& payload,
                             std::uint32_t icrc_start) {
  payload.copy(take_scratch(bytes));
  const Bytes pad = take_scratch(wire::pad_bytes_for(bytes));
  std::fill(pad.begin(), pad.end(), std::byte{0});
  const Bytes covered(headers.data(), pad.data() + pad.size());
  write_trailer(icrc_in_place(icrc_start, covered), 0);
  add_piece({headers.data(), scratch_->data() + scratch_used_});
}

void SendBatch::gather_payload(Bytes headers, std::uint32_t bytes, wire::PayloadCursor& payload,
                               std::uint32_t icrc_start) {
  std::uint32_t state = wire::icrc_headers(fast_crc32, icrc_start, headers);
  add_piece(headers);
  for (std::uint32_t left = bytes; left != 0;) {
    const ConstBytes piece = payload.take(left);
    state = fast_crc32(state, piece.data(), piece.size());
    add_piece(piece);
    left -= static_cast<std::uint32_t>(piece.size());
  }
  add_piece(write_trailer(state, wire::pad_bytes_for(bytes)));
}

ConstBytes SendBatch::write_trailer(std::uint32_t state, std::size_t pad_bytes) {
  const std::span<std::byte, wire::kMaxTrailerBytes> room(scratch_->data() + scratch_used_,
                                                          wire::kMaxTrailerBytes);
  return take_scratch(wire::icrc_trailer(fast_crc32, state, pad_bytes, room));
}

void SendBatch::add_piece(ConstBytes piece) {
  msghdr& system = (*system_)[message_count_ - 1].msg_hdr;
  if (system.msg_iovlen != 0) {
    iovec& last = system.msg_iov[system.msg_iovlen - 1];
    if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == piece.data()) {
      last.iov_len += piece.size();
      return;
    }
  }
  (*pieces_)[piece_count_++] = {const_cast<std::byte*>(piece.data()), piece.size()};
  ++system.msg_iovlen;
}

void SendBatch::finish() {
  for (std::size_t i = 0; i < message_count_; ++i) {
    if (messages_[i].packet_count > 1) add_segment_size(i);
  }
}

void SendBatch::add_segment_size(std::size_t i) {
  const auto segment_bytes = static_cast<std::uint16_t>(messages_[i].segment_bytes);
  cmsghdr header{};
  header.cmsg_len = CMSG_LEN(sizeof segment_bytes);
  header.cmsg_level = SOL_UDP;
  header.cmsg_type = UDP_SEGMENT;
  msghdr& system = (*system_)[i].msg_hdr;
  std::byte* const at = (*control_)[i].bytes.data() + system.msg_controllen;
  std::memcpy(at, &header, sizeof header);
  std::memcpy(at + CMSG_LEN(0), &segment_bytes, sizeof segment_bytes);
  system.msg_controllen += CMSG_SPACE(sizeof segment_bytes);
}

}  // namespace uroce::datapath::udp
