// SPDX-License-Identifier: BSD-2-Clause
// Messages for sendmmsg, put together packet by packet.
//
// A message is a train: packets of one flow and destination QP, all as long as the first but the
// last, which may be shorter. UDP_SEGMENT has the kernel cut it up again, each packet with an IP
// and UDP header of its own. It may span frames, so that sixty small WRITEs of a QP leave as one.
//
// Headers, pads and ICRCs lie in a scratch area, payload is gathered from where it is. What lies
// together goes as one piece, as the ICRC of a packet and the headers of the next always do.
// Payloads of up to 1,024 bytes are copied between them: that costs less than the kernel's work on
// two more pieces (at path MTU 1024, 33 us for 64 KiB against 36).
//
// Nothing here makes a system call.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "datapath/udp/route.h"
#include "uroce/packet.h"
#include "wire/run.h"

namespace uroce::datapath::udp {

// A packet of a burst.
struct PacketPosition {
  std::size_t frame = 0;
  unsigned packet = 0;  // in the frame's run
};

class SendBatch {
 public:
  struct Message {
    Route* route = nullptr;
    Qpn destination;
    PacketPosition first;
    std::uint32_t packet_count = 0;
    std::uint32_t segment_bytes = 0;  // of every packet but the last
    std::uint32_t bytes = 0;
    bool is_complete = false;  // a shorter packet has ended it
  };

  SendBatch();

  void clear();
  [[nodiscard]] std::size_t size() const { return message_count_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] const Message& operator[](std::size_t i) const { return messages_[i]; }
  [[nodiscard]] mmsghdr* system_messages() { return system_->data(); }

  // Appends packet `position.packet` of `frame`, whose payload `payload` stands at. False, with
  // nothing changed: no room, send first.
  [[nodiscard]] bool append(const TxFrame& frame, Route& route, PacketPosition position,
                            wire::PayloadCursor& payload);

  // Completes the messages for the system call.
  void finish();

 private:
  static constexpr std::size_t kMessagesMax = 64;
  static constexpr std::size_t kPiecesMax = 2'048;
  static constexpr std::size_t kPiecesOfMessageMax = 1'024;  // the kernel's UIO_MAXIOV
  static constexpr std::size_t kScratchBytes = 96 << 10;
  static constexpr std::size_t kCopiedPayloadMax = 1024;
  static constexpr std::size_t kControlBytes = 160;
  struct Control {
    alignas(cmsghdr) std::array<std::byte, kControlBytes> bytes;
  };

  [[nodiscard]] bool has_room(const TxFrame& frame) const;
  [[nodiscard]] bool extends_last(const TxFrame& frame, const Route& route,
                                  std::uint32_t packet_bytes) const;
  bool start_message(const TxFrame& frame, Route& route, PacketPosition position,
                     std::uint32_t packet_bytes);
  void write_packet(const TxFrame& frame, unsigned index, std::uint32_t packet_bytes,
                    wire::PayloadCursor& payload);
  Bytes take_scratch(std::size_t bytes);
  Bytes write_headers(const TxFrame& frame, unsigned index);
  void copy_payload(Bytes headers, std::uint32_t bytes, wire::PayloadCursor& payload,
                    std::uint32_t icrc_start);
  void gather_payload(Bytes headers, std::uint32_t bytes, wire::PayloadCursor& payload,
                      std::uint32_t icrc_start);
  ConstBytes write_trailer(std::uint32_t state, std::size_t pad_bytes);
  void add_piece(ConstBytes piece);
  void add_segment_size(std::size_t i);

  std::array<Message, kMessagesMax> messages_;
  std::size_t message_count_ = 0;
  std::size_t bytes_ = 0;
  std::size_t piece_count_ = 0;
  std::size_t scratch_used_ = 0;
  std::unique_ptr<std::array<mmsghdr, kMessagesMax>> system_;
  std::unique_ptr<std::array<iovec, kPiecesMax>> pieces_;
  std::unique_ptr<std::array<Control, kMessagesMax>> control_;
  std::unique_ptr<std::array<std::byte, kScratchBytes>> scratch_;
};

}  // namespace uroce::datapath::udp
