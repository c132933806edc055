// SPDX-License-Identifier: BSD-2-Clause
#include "support/unwanted.h"

#include <algorithm>

#include "base/check.h"

namespace uroce::test {
namespace {

using wire::Opcode;

constexpr Gid kStranger = {{0xfd, 0, 0, 66}};

// Kinds that stop before a queue pair is found or its state is looked at.
void add_malformed(std::vector<Unwanted>& all, const Packet& write) {
  const auto changed = [&write](std::size_t at, unsigned value) {
    Packet packet = write;
    packet.bytes[at] = std::byte(value);
    return packet;
  };
  Packet runt = write;
  runt.bytes.resize(8);
  all.push_back({.name = "too short", .packet = runt});
  Packet cut = write;
  cut.bytes.resize(wire::kBthBytes + 4);
  all.push_back({.name = "truncated headers", .packet = cut});
  all.push_back({.name = "unknown opcode", .packet = changed(0, 0xff)});
  all.push_back({.name = "bad version", .packet = changed(1, 0x41)});
  all.push_back({.name = "unknown QPN", .packet = changed(6, 0x77)});
  all.push_back({.name = "unused block of QPNs", .packet = changed(5, 0x77)});
  all.push_back({.name = "other service", .packet = changed(0, 0x24)});
  all.push_back({.name = "wrong P_Key", .packet = changed(3, 0x12)});
}

}  // namespace

std::vector<Unwanted> unwanted_packets(const Endpoint& endpoint, Qpn ours, Psn first) {
  const auto bth = [ours](Opcode opcode, Psn psn) {
    return wire::Bth{.opcode = opcode, .destination = ours, .ack_request = true, .psn = psn};
  };
  const auto reth = [&endpoint](std::uint32_t key) {
    return wire::Reth{endpoint.address(0), {key}, 8};
  };
  const auto write = [&](Psn psn, std::uint32_t key) {
    return make_packet(bth(Opcode::kRcWriteOnly, psn), 8, reth(key));
  };
  const Packet good = write(first, Endpoint::kKey);
  std::vector<Unwanted> all;
  add_malformed(all, good);
  all.push_back({.name = "wrong address", .packet = good, .is_from_stranger = true});
  all.push_back({.name = "stale acknowledgement",
                 .packet = make_packet(bth(Opcode::kRcAcknowledge, first - 1), 0,
                                       wire::Aeth{wire::Syndrome::ack(), {0}})});
  all.push_back({.name = "stale READ response",
                 .packet = make_packet(bth(Opcode::kRcReadResponseOnly, first - 1), 1024,
                                       wire::Aeth{wire::Syndrome::ack(), {0}})});
  all.push_back({.name = "duplicate WRITE", .packet = write(first - 1, Endpoint::kKey)});
  all.push_back(
      {.name = "duplicate READ, not kept",
       .packet = make_packet(bth(Opcode::kRcReadRequest, first - 1), 0, reth(Endpoint::kKey))});
  all.push_back({.name = "PSN ahead", .packet = write(first + 1000, Endpoint::kKey)});
  all.push_back({.name = "wrong key", .packet = write(first, 0xbad'0bad), .ends_connection = true});
  UROCE_CHECK(std::ranges::equal(all, kUnwantedNames, {}, &Unwanted::name));
  return all;
}

RxPacket received_from(const Unwanted& unwanted, const Path& path) {
  RxPacket packet = unwanted.packet.received();
  packet.source = unwanted.is_from_stranger ? &kStranger : &path.destination;
  packet.destination = &path.source;
  return packet;
}

}  // namespace uroce::test
