// SPDX-License-Identifier: BSD-2-Clause
#include "wire/icrc.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/byte_order.h"
#include "base/check.h"
#include "wire/bytes.h"
#include "wire/crc_algebra.h"
#include "wire/network.h"
#include "wire/opcode.h"

namespace uroce::wire {
namespace {

constexpr std::byte kMasked{0xff};
constexpr std::size_t kLrhBytes = 8;
constexpr std::size_t kBthCongestionByte = 4;
constexpr std::size_t kMaxIpHeaderBytes = 60;

// What a 16-bit field adds to the CRC up to the BTH, by value of its two bytes. The field begins
// `bytes_to_bth` before the BTH.
using FieldEffect = std::array<std::array<std::uint32_t, 256>, 2>;

constexpr FieldEffect field_effect(std::size_t bytes_to_bth) {
  FieldEffect effect{};
  for (std::size_t which = 0; which < 2; ++which) {
    // A table of a linear map: the eight single bits by walking, the rest by adding.
    for (std::uint32_t bit = 1; bit < 256; bit <<= 1) {
      std::uint32_t value = bit;
      for (std::size_t n = which; n < bytes_to_bth; ++n) value = append_zero_byte(value);
      for (std::uint32_t low = 0; low < bit; ++low) {
        effect[which][bit + low] = value ^ effect[which][low];
      }
    }
  }
  return effect;
}

constexpr FieldEffect kIpv4LengthEffect = field_effect(kIpv4HeaderBytes - 2 + kUdpHeaderBytes);
constexpr FieldEffect kIpv4IdentificationEffect =
    field_effect(kIpv4HeaderBytes - 4 + kUdpHeaderBytes);
constexpr FieldEffect kIpv6LengthEffect = field_effect(kIpv6HeaderBytes - 4 + kUdpHeaderBytes);
constexpr FieldEffect kUdpLengthEffect = field_effect(kUdpHeaderBytes - 4);

std::uint32_t apply(const FieldEffect& effect, std::size_t value) {
  return effect[0][value >> 8 & 0xff] ^ effect[1][value & 0xff];
}

void mask_ip_header(std::byte* ip) {
  if (static_cast<unsigned>(ip[0]) >> 4 == 4) {
    ip[1] = ip[8] = ip[10] = ip[11] = kMasked;  // type of service, time to live, checksum
  } else {
    ip[0] |= std::byte{0x0f};  // traffic class and flow label, behind the version
    ip[1] = ip[2] = ip[3] = kMasked;
    ip[7] = kMasked;  // hop limit
  }
}

}  // namespace

std::uint32_t icrc_start(Crc32Function crc, ConstBytes ip_header, ConstBytes udp_header) {
  UROCE_CHECK(ip_header.size() >= kIpv4HeaderBytes && ip_header.size() <= kMaxIpHeaderBytes &&
              udp_header.size() == kUdpHeaderBytes);
  std::array<std::byte, kLrhBytes + kMaxIpHeaderBytes + kUdpHeaderBytes> masked;
  std::fill_n(masked.data(), kLrhBytes, kMasked);
  std::byte* const ip = masked.data() + kLrhBytes;
  std::byte* const udp = std::copy(ip_header.begin(), ip_header.end(), ip);
  std::byte* const end = std::copy(udp_header.begin(), udp_header.end(), udp);
  mask_ip_header(ip);
  udp[6] = udp[7] = kMasked;  // checksum
  return crc(0, masked.data(), static_cast<std::size_t>(end - masked.data()));
}

IcrcFlow::IcrcFlow(const Gid& source, const Gid& destination, std::uint16_t udp_source_port,
                   bool dont_fragment)
    : is_ipv4_(destination.is_ipv4()) {
  const auto udp = to_wire(Udp{.source_port = udp_source_port, .destination_port = kRoceUdpPort});
  const ConstBytes udp_bytes = std::as_bytes(std::span(&udp, 1));
  if (is_ipv4_) {
    std::array<std::byte, kIpv4HeaderBytes> ip;
    store_ipv4(ip.data(), {.source = ipv4_of(source),
                           .destination = ipv4_of(destination),
                           .dont_fragment = dont_fragment});
    without_lengths_ = icrc_start(crc32, ip, udp_bytes);
  } else {
    const auto ip = to_wire(Ipv6{.source = source, .destination = destination});
    without_lengths_ = icrc_start(crc32, std::as_bytes(std::span(&ip, 1)), udp_bytes);
  }
}

std::uint32_t IcrcFlow::start(std::size_t udp_payload_bytes, std::uint16_t identification) const {
  const std::size_t udp_bytes = kUdpHeaderBytes + udp_payload_bytes;
  const std::uint32_t state = without_lengths_ ^ apply(kUdpLengthEffect, udp_bytes);
  if (!is_ipv4_) return state ^ apply(kIpv6LengthEffect, udp_bytes);
  return state ^ apply(kIpv4LengthEffect, kIpv4HeaderBytes + udp_bytes) ^
         apply(kIpv4IdentificationEffect, identification);
}

std::uint32_t icrc_headers(Crc32Function crc, std::uint32_t start, ConstBytes headers) {
  UROCE_CHECK(headers.size() >= kBthBytes && headers.size() <= kMaxHeaderBytes);
  std::array<std::byte, kMaxHeaderBytes> masked;
  std::memcpy(masked.data(), headers.data(), headers.size());
  masked[kBthCongestionByte] = kMasked;
  return crc(start, masked.data(), headers.size());
}

std::size_t icrc_trailer(Crc32Function crc, std::uint32_t state, std::size_t pad_bytes,
                         std::span<std::byte, kMaxTrailerBytes> out) {
  UROCE_CHECK(pad_bytes < 4);
  std::fill_n(out.data(), pad_bytes, std::byte{0});
  if (pad_bytes != 0) state = crc(state, out.data(), pad_bytes);
  store(out.data() + pad_bytes, Be32(swap_bytes(state)));
  return pad_bytes + kIcrcBytes;
}

std::uint32_t icrc_of(Crc32Function crc, std::uint32_t start, ConstBytes covered) {
  const std::size_t head_bytes = std::min(covered.size(), kMaxHeaderBytes);
  const std::uint32_t state = icrc_headers(crc, start, covered.first(head_bytes));
  const ConstBytes rest = covered.subspan(head_bytes);
  return rest.empty() ? state : crc(state, rest.data(), rest.size());
}

std::uint32_t load_icrc(ConstBytes packet) {
  UROCE_CHECK(packet.size() >= kIcrcBytes);
  return swap_bytes(load<Be32>(packet.data() + packet.size() - kIcrcBytes).get());
}

}  // namespace uroce::wire
