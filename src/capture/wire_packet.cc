// SPDX-License-Identifier: BSD-2-Clause
#include "capture/wire_packet.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "wire/headers.h"
#include "wire/icrc.h"
#include "wire/network.h"

namespace uroce::capture {
namespace {

std::size_t ip_header_bytes(const Path& path) {
  return path.destination.is_ipv4() ? wire::kIpv4HeaderBytes : wire::kIpv6HeaderBytes;
}

std::size_t network_header_bytes(const Path& path) {
  return wire::kEthernetHeaderBytes + ip_header_bytes(path) + wire::kUdpHeaderBytes;
}

// Writes what comes before the BTH; returns it and, by `packet`, what comes behind but for the
// ICRC.
ConstBytes write_network(const Path& path, Bytes out, Bytes& packet) {
  std::array<std::byte, wire::kMaxNetworkHeaderBytes> headers;
  const std::size_t bytes = network_header_bytes(path);
  wire::build_network(path, {}, static_cast<std::uint16_t>(out.size() - bytes), 0, headers);
  std::copy_n(headers.data(), bytes, out.data());
  packet = out.subspan(bytes, out.size() - bytes - wire::kIcrcBytes);
  return out.first(bytes);
}

// Behind `packet`, which is complete.
void write_icrc(ConstBytes network, wire::Crc32Function crc, Bytes packet) {
  const ConstBytes udp_header = network.last(wire::kUdpHeaderBytes);
  const ConstBytes ip =
      network.subspan(wire::kEthernetHeaderBytes,
                      network.size() - wire::kEthernetHeaderBytes - wire::kUdpHeaderBytes);
  const std::uint32_t icrc = wire::icrc_of(crc, wire::icrc_start(crc, ip, udp_header), packet);
  std::array<std::byte, wire::kMaxTrailerBytes> trailer;
  const std::size_t bytes = wire::icrc_trailer(crc, icrc, 0, trailer);
  std::copy_n(trailer.data(), bytes, packet.data() + packet.size());
}

}  // namespace

std::size_t wire_packet_bytes(const Path& path, std::size_t packet_bytes) {
  return network_header_bytes(path) + packet_bytes + wire::kIcrcBytes;
}

void write_wire_packet(const Path& path, const TxFrame& frame, unsigned index,
                       wire::PayloadCursor& payload, wire::Crc32Function crc, Bytes out) {
  Bytes packet;
  const ConstBytes network = write_network(path, out, packet);
  std::array<std::byte, kMaxHeaderBytes> headers;
  const std::size_t header_bytes = wire::run_headers(frame, index, headers);
  std::copy_n(headers.data(), header_bytes, packet.data());
  const std::uint32_t payload_bytes = wire::run_payload_bytes(frame, index);
  payload.copy(packet.subspan(header_bytes, payload_bytes));
  std::ranges::fill(packet.subspan(header_bytes + payload_bytes), std::byte{0});  // pad
  write_icrc(network, crc, packet);
}

void write_wire_bytes(const Path& path, ConstBytes bytes, wire::Crc32Function crc, Bytes out) {
  Bytes packet;
  const ConstBytes network = write_network(path, out, packet);
  std::ranges::copy(bytes, packet.data());
  if (packet.size() >= wire::kBthBytes) write_icrc(network, crc, packet);
}

}  // namespace uroce::capture
