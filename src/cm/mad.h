// SPDX-License-Identifier: BSD-2-Clause
// Management datagrams of the communication manager as they lie on the wire (IBTA 12.6 to 12.11,
// 13.4.2): 24 bytes of header, 232 of message. Every struct has alignment 1 and no padding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/byte_order.h"
#include "uroce/ids.h"

namespace uroce::cm {

inline constexpr std::size_t kMadBytes = 256;
inline constexpr std::size_t kMadHeaderBytes = 24;
inline constexpr std::size_t kMessageBytes = kMadBytes - kMadHeaderBytes;

enum class Attribute : std::uint16_t {
  kRequest = 0x10,
  kMessageReceipt = 0x11,
  kReject = 0x12,
  kReply = 0x13,
  kReady = 0x14,
  kDisconnectRequest = 0x15,
  kDisconnectReply = 0x16,
  kSidrRequest = 0x17,
  kSidrReply = 0x18,
  kLoadAlternatePath = 0x19,
  kAlternatePathResponse = 0x1a,
};

// 24 bits of a number and 8 of flags.
class Be24_8 {
 public:
  constexpr Be24_8() = default;
  constexpr Be24_8(std::uint32_t high, std::uint8_t low) : word_(high << 8 | low) {}
  [[nodiscard]] constexpr std::uint32_t high() const { return word_.get() >> 8; }
  [[nodiscard]] constexpr std::uint8_t low() const {
    return static_cast<std::uint8_t>(word_.get() & 0xff);
  }

 private:
  Be32 word_;
};

struct MadHeader {
  std::uint8_t base_version = 1;
  std::uint8_t management_class = 7;
  std::uint8_t class_version = 2;
  std::uint8_t method = 3;  // Send: messages of the communication manager know no other
  Be16 status;
  Be16 class_specific;
  Be64 transaction;
  Be16 attribute;
  Be16 reserved;
  Be32 modifier;
};
static_assert(sizeof(MadHeader) == kMadHeaderBytes && alignof(MadHeader) == 1);

struct Mad {
  MadHeader header;
  std::array<std::byte, kMessageBytes> message{};

  [[nodiscard]] Attribute attribute() const {
    return static_cast<Attribute>(header.attribute.get());
  }
  template <typename Message>
  [[nodiscard]] Message as() const {
    static_assert(sizeof(Message) == kMessageBytes && alignof(Message) == 1);
    Message copy;
    std::memcpy(&copy, message.data(), sizeof copy);
    return copy;
  }
  template <typename Message>
  void set(Attribute attribute, std::uint64_t transaction, const Message& from) {
    static_assert(sizeof(Message) == kMessageBytes && alignof(Message) == 1);
    header = {};
    header.attribute = Be16(static_cast<std::uint16_t>(attribute));
    header.transaction = Be64(transaction);
    std::memcpy(message.data(), &from, sizeof from);
  }
};
static_assert(sizeof(Mad) == kMadBytes && alignof(Mad) == 1);

// The path of a request, primary or alternate.
struct PathWire {
  Be16 local_lid;
  Be16 remote_lid;
  Gid local_gid;
  Gid remote_gid;
  Be32 flow_and_rate;  // flow label: 20, reserved: 6, rate: 6
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;  // SL: 4, subnet local: 1, reserved: 3
  std::uint8_t ack_timeout = 0;    // timeout: 5, reserved: 3
};
static_assert(sizeof(PathWire) == 44);

template <std::size_t kBytes>
using PrivateBytes = std::array<std::byte, kBytes>;

struct RequestWire {
  Be32 local_id;
  Be32 reserved;
  Be64 service_id;
  Be64 ca_guid;
  Be32 reserved2;
  Be32 qkey;
  Be24_8 qpn_and_responder_resources;
  Be24_8 eecn_and_initiator_depth;
  Be24_8
      remote_eecn_and_flags;  // remote response timeout: 5, transport service: 2, flow control: 1
  Be24_8 psn_and_timeouts;    // local response timeout: 5, retry count: 3
  Be16 pkey;
  std::uint8_t mtu_and_rnr = 0;      // path MTU: 4, RDC exists: 1, RNR retry count: 3
  std::uint8_t retries_and_srq = 0;  // most CM retries: 4, SRQ: 1, extended transport: 3
  PathWire primary;
  PathWire alternate;
  PrivateBytes<92> private_data{};
};
struct ReplyWire {
  Be32 local_id;
  Be32 remote_id;
  Be32 qkey;
  Be24_8 qpn;
  Be24_8 eecn;
  Be24_8 psn;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t ack_delay_and_flags = 0;  // target ACK delay: 5, failover: 2, flow control: 1
  std::uint8_t rnr_and_srq = 0;          // RNR retry count: 3, SRQ: 1, reserved: 4
  Be64 ca_guid;
  PrivateBytes<196> private_data{};
};
struct ReadyWire {
  Be32 local_id;
  Be32 remote_id;
  PrivateBytes<224> private_data{};
};
struct RejectWire {
  Be32 local_id;
  Be32 remote_id;
  std::uint8_t message = 0;  // which is rejected: 2, reserved: 6
  std::uint8_t information_length = 0;
  Be16 reason;
  PrivateBytes<72> information{};
  PrivateBytes<148> private_data{};
};
struct MessageReceiptWire {
  Be32 local_id;
  Be32 remote_id;
  std::uint8_t message = 0;          // which was received: 2, reserved: 6
  std::uint8_t service_timeout = 0;  // timeout: 5, reserved: 3
  PrivateBytes<222> private_data{};
};
struct DisconnectRequestWire {
  Be32 local_id;
  Be32 remote_id;
  Be24_8 remote_qpn;
  PrivateBytes<220> private_data{};
};
using DisconnectReplyWire = ReadyWire;
struct AlternatePathResponseWire {
  Be32 local_id;
  Be32 remote_id;
  std::uint8_t information_length = 0;
  std::uint8_t status = 0;
  Be16 reserved;
  PrivateBytes<72> information{};
  PrivateBytes<148> private_data{};
};
struct SidrRequestWire {
  Be32 request_id;
  Be16 pkey;
  Be16 reserved;
  Be64 service_id;
  PrivateBytes<216> private_data{};
};
struct SidrReplyWire {
  Be32 request_id;
  std::uint8_t status = 0;
  std::uint8_t information_length = 0;
  Be16 reserved;
  Be24_8 qpn;
  Be64 service_id;
  Be32 qkey;
  PrivateBytes<72> information{};
  PrivateBytes<136> private_data{};
};

// Both identifiers stand first in all but what concerns a service identifier resolution (SIDR).
struct IdentifiersWire {
  Be32 local_id;
  Be32 remote_id;
  PrivateBytes<kMessageBytes - 8> rest{};
};

}  // namespace uroce::cm
