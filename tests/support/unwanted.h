// SPDX-License-Identifier: BSD-2-Clause
// Packets that nobody asked for, one of each kind, as a flood would bring them: for the tests that
// say what they must not do, and for the benchmark that says what each costs.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "support/packets.h"

namespace uroce::test {

// In the order of unwanted_packets().
inline constexpr std::array<std::string_view, 15> kUnwantedNames = {"too short",
                                                                    "truncated headers",
                                                                    "unknown opcode",
                                                                    "bad version",
                                                                    "unknown QPN",
                                                                    "unused block of QPNs",
                                                                    "other service",
                                                                    "wrong P_Key",
                                                                    "wrong address",
                                                                    "stale acknowledgement",
                                                                    "stale READ response",
                                                                    "duplicate WRITE",
                                                                    "duplicate READ, not kept",
                                                                    "PSN ahead",
                                                                    "wrong key"};

struct Unwanted {
  std::string_view name;
  Packet packet;
  bool is_from_stranger = false;  // from an address that is not the peer's
  bool ends_connection = false;   // the first one takes the queue pair into ERR
};

// For an endpoint whose buffer is registered and whose queue pair `ours` is in RTS with both PSNs
// at `first`; before it nothing, or one answered request, has been.
std::vector<Unwanted> unwanted_packets(const Endpoint& endpoint, Qpn ours, Psn first);

// As a datapath that sees addresses would lend it.
RxPacket received_from(const Unwanted& unwanted, const Path& path);

}  // namespace uroce::test
