// SPDX-License-Identifier: BSD-2-Clause
#include "wire/grh.h"

#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/network.h"

namespace uroce::wire {

Grh grh_of(const RxPacket& packet) {
  const auto udp_bytes = static_cast<std::uint16_t>(kUdpHeaderBytes + packet.bytes.size() +
                                                    packet.detached_payload.size() + kIcrcBytes);
  Grh grh{};
  if (packet.destination->is_ipv4()) {
    store_ipv4(grh.data() + kGrhBytes - kIpv4HeaderBytes,
               {.source = ipv4_of(*packet.source),
                .destination = ipv4_of(*packet.destination),
                .traffic_class = packet.traffic_class,
                .hop_limit = packet.hop_limit,
                .total_bytes = static_cast<std::uint16_t>(kIpv4HeaderBytes + udp_bytes)});
  } else {
    store(grh.data(), to_wire(Ipv6{.source = *packet.source,
                                   .destination = *packet.destination,
                                   .traffic_class = packet.traffic_class,
                                   .flow_label = packet.flow_label,
                                   .hop_limit = packet.hop_limit,
                                   .payload_bytes = udp_bytes}));
  }
  return grh;
}

}  // namespace uroce::wire
