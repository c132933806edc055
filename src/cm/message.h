// SPDX-License-Identifier: BSD-2-Clause
// What the messages say, in the terms of who uses them: an offer of a connection, private data, and
// the addresses that the IP annex puts in front of the latter.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cm/mad.h"
#include "uroce/ids.h"

namespace uroce::cm {

// Of the one partition that every port is a full member of (IBTA 10.9.2).
inline constexpr std::uint16_t kDefaultPkey = 0xffff;

// IBTA 12.6.7.2.
enum class Reason : std::uint16_t {
  kNone = 0,
  kNoResources = 3,
  kTimeout = 4,
  kUnsupported = 5,
  kInvalidId = 6,
  kInvalidServiceId = 8,
  kInvalidService = 9,  // the type of transport service
  kStaleConnection = 10,
  kConsumer = 28,
};

enum class SidrStatus : std::uint8_t { kValid = 0, kUnsupported = 1, kReject = 2, kNoQp = 3 };

// What either side may say to the other, at most the 224 bytes of an RTU.
class PrivateData {
 public:
  static constexpr std::size_t kBytesMax = 224;

  PrivateData() = default;
  // What is too long is cut.
  explicit PrivateData(std::span<const std::byte> from)
      : length_(static_cast<std::uint8_t>(std::min(from.size(), kBytesMax))) {
    std::copy_n(from.begin(), length_, bytes_.begin());
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.data(), length_}; }

 private:
  std::array<std::byte, kBytesMax> bytes_{};
  std::uint8_t length_ = 0;
};

// Transport service types (IBTA 12.7.14). XRC is told by the extended type; its requester offers an
// initiator, and is answered with a target.
enum class Service : std::uint8_t { kRc = 0, kUc = 1, kXrc = 3 };

// What a side brings into a connection: its queue pair, and how much it takes and gives.
struct Offer {
  Qpn qpn;
  std::uint32_t psn = 0;  // from where on it expects packets: the peer begins with it (IBTA 12.7)
  Service service = Service::kRc;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  bool flow_control = false;
  bool has_srq = false;
  std::uint8_t path_mtu = 0;     // IBTA's code, 1 (256) to 5 (4096)
  std::uint8_t ack_timeout = 0;  // IBTA's code
  std::uint64_t ca_guid = 0;
};

// IBTA annex A11: which addresses and ports a service ID stands for. In front of the private data
// of a request.
struct IpAddresses {
  Gid source;
  Gid destination;
  std::uint16_t source_port = 0;
  bool is_ipv4 = false;
};
inline constexpr std::size_t kIpHeaderBytes = 36;
inline constexpr std::size_t kRequestPrivateBytes = 92 - kIpHeaderBytes;
inline constexpr std::size_t kReplyPrivateBytes = 196;
inline constexpr std::size_t kRejectPrivateBytes = 148;
inline constexpr std::size_t kSidrRequestPrivateBytes = 216 - kIpHeaderBytes;
inline constexpr std::size_t kSidrReplyPrivateBytes = 136;

void write_ip_header(const IpAddresses& addresses, std::span<std::byte> to);
// Nothing where it is none: another version, or of neither IPv4 nor IPv6.
[[nodiscard]] std::optional<IpAddresses> read_ip_header(std::span<const std::byte> from);

struct Route;

[[nodiscard]] RequestWire make_request(std::uint32_t local_id, std::uint64_t service_id,
                                       const Route& route, const Offer& offer,
                                       const IpAddresses& addresses, const PrivateData& data);
// Nothing for a service that is none of ours.
[[nodiscard]] std::optional<Offer> offer_of(const RequestWire& request);
[[nodiscard]] ReplyWire make_reply(std::uint32_t local_id, std::uint32_t remote_id,
                                   const Offer& offer, const PrivateData& data);
[[nodiscard]] Offer offer_of(const ReplyWire& reply, Service service);
// Asks for patience with the answer to a request or a reply.
[[nodiscard]] MessageReceiptWire make_receipt(Attribute of, std::uint32_t local_id,
                                              std::uint32_t remote_id);

template <std::size_t kBytes>
PrivateBytes<kBytes> padded(const PrivateData& data) {
  PrivateBytes<kBytes> bytes{};
  const auto from = data.bytes();
  std::copy_n(from.begin(), std::min(from.size(), kBytes), bytes.begin());
  return bytes;
}

}  // namespace uroce::cm
