// SPDX-License-Identifier: BSD-2-Clause
#include "wire/management.h"

#include <algorithm>

#include "base/byte_order.h"
#include "wire/bth.h"
#include "wire/bytes.h"
#include "wire/opcode.h"

namespace uroce::wire {
namespace {

constexpr std::size_t kMadOffset = 20;
constexpr std::size_t kMadBytes = 256;
constexpr std::byte kCommunicationManagement{7};
constexpr std::size_t kOffsetOfServiceId = kMadOffset + 24 + 8;
// The header of the IP annex begins the private data.
constexpr std::size_t kOffsetInConnectRequest = kMadOffset + 24 + 140;
constexpr std::size_t kOffsetInSidrRequest = kMadOffset + 24 + 16;

Gid asked_address(const std::byte* ip_header) {
  constexpr std::size_t kOffsetOfDestination = 20;
  const bool is_ipv4 = (ip_header[1] >> 4) == std::byte{4};
  Gid gid = load<Gid>(ip_header + kOffsetOfDestination);
  if (is_ipv4) {
    std::fill_n(gid.bytes.begin(), 10, std::uint8_t{0});
    gid.bytes[10] = gid.bytes[11] = 0xff;
  }
  return gid;
}

}  // namespace

std::optional<ManagementAddressee> addressee_of_packet(ConstBytes packet) {
  if (packet.size() < kMadOffset + kMadBytes) return std::nullopt;
  const Bth bth = from_words(load_bth(packet.data()));
  if (bth.destination != kManagementQpn || bth.opcode != Opcode::kUdSendOnly) return std::nullopt;
  return addressee_of_mad(packet.subspan(kMadOffset, kMadBytes));
}

std::optional<ManagementAddressee> addressee_of_mad(ConstBytes mad) {
  if (mad.size() < kMadBytes || mad[1] != kCommunicationManagement) return std::nullopt;
  const auto at = [&mad](std::size_t from_bth) { return mad.data() + (from_bth - kMadOffset); };
  const std::uint16_t attribute = load<Be16>(at(kOffsetOfAttribute)).get();
  ManagementAddressee addressee;
  if (attribute == kConnectRequestAttribute || attribute == kSidrRequestAttribute) {
    addressee.is_service = true;
    addressee.service_id = load<Be64>(at(kOffsetOfServiceId)).get();
    addressee.address = asked_address(
        at(attribute == kConnectRequestAttribute ? kOffsetInConnectRequest : kOffsetInSidrRequest));
    return addressee;
  }
  const std::size_t identifier =
      attribute == kSidrReplyAttribute ? kOffsetOfRequestIdentifier : kOffsetOfRemoteIdentifier;
  addressee.block = block_of_identifier(load<Be32>(at(identifier)).get());
  return addressee;
}

}  // namespace uroce::wire
