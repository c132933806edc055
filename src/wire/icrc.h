// SPDX-License-Identifier: BSD-2-Clause
// The invariant CRC (IBTA 7.8.1, for RoCE v2 annex A17): CRC-32 over everything that no router
// changes, stored least significant byte first behind the pad.
//
// Covered are eight bytes of ones (where InfiniBand has its LRH), the IP header, the UDP header,
// and the packet from the BTH to the pad. What may change on the way counts as ones: IPv4 type of
// service, time to live and checksum; IPv6 traffic class, flow label and hop limit; the UDP
// checksum; the BTH byte of FECN and BECN. IPv4's identification and flags are covered: a sender
// must know what it will send there, and for a receiver that cannot see them there is
// wire/identification.h.
//
//   const IcrcFlow flow(path.source, path.destination, path.udp_source_port);   // once a path
//
//   std::uint32_t state = icrc_headers(crc, flow.start(udp_payload_bytes), headers);
//   for (piece of the payload) state = crc(state, piece.data(), piece.size());
//   trailer_bytes = icrc_trailer(crc, state, pad_bytes, trailer);               // pad and ICRC
//
//   bool good = icrc_of(crc, flow.start(udp_payload.size()), covered) == load_icrc(udp_payload);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "uroce/ids.h"
#include "uroce/packet.h"
#include "wire/crc32.h"

namespace uroce::wire {

inline constexpr std::size_t kIcrcBytes = 4;
inline constexpr std::size_t kMaxTrailerBytes = 3 + kIcrcBytes;
inline constexpr std::uint16_t kRoceUdpPort = 4791;

// The part before the BTH. All packets of a flow differ there only in two lengths and IPv4's
// identification; what those add is looked up, so that a start costs some six loads and no CRC.
class IcrcFlow {
 public:
  IcrcFlow() = default;
  // `dont_fragment` as IPv4's flag has it; without meaning for IPv6.
  IcrcFlow(const Gid& source, const Gid& destination, std::uint16_t udp_source_port,
           bool dont_fragment = true);

  // The running CRC up to the BTH of a packet with so many bytes from the BTH to the ICRC, both
  // included. `identification` counts for IPv4 only.
  [[nodiscard]] std::uint32_t start(std::size_t udp_payload_bytes,
                                    std::uint16_t identification = 0) const;

 private:
  std::uint32_t without_lengths_ = 0;
  bool is_ipv4_ = false;
};

// The same from the headers themselves, for who has them: an IPv4 header with its options or an
// IPv6 header of 40 bytes, and the UDP header.
[[nodiscard]] std::uint32_t icrc_start(Crc32Function crc, ConstBytes ip_header,
                                       ConstBytes udp_header);

// Goes on over BTH and extension headers, at most kMaxHeaderBytes.
[[nodiscard]] std::uint32_t icrc_headers(Crc32Function crc, std::uint32_t start,
                                         ConstBytes headers);

// Ends the packet: writes pad and ICRC, and returns how many bytes they are.
std::size_t icrc_trailer(Crc32Function crc, std::uint32_t state, std::size_t pad_bytes,
                         std::span<std::byte, kMaxTrailerBytes> out);

// The ICRC of a packet that lies in one piece; `covered` is all from the BTH (which is there) to
// the pad.
[[nodiscard]] std::uint32_t icrc_of(Crc32Function crc, std::uint32_t start, ConstBytes covered);

// The ICRC that a packet bears in its last four bytes (which are there).
[[nodiscard]] std::uint32_t load_icrc(ConstBytes packet);

}  // namespace uroce::wire
