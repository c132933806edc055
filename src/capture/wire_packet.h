// SPDX-License-Identifier: BSD-2-Clause
// A packet as an Ethernet would carry it: Ethernet, IP and UDP headers in front, pad and ICRC
// behind. What a link does not have or does not tell is made up as a socket's sender would: no MAC
// addresses (as on Linux' loopback), IPv4 identification 0 with DF, the connection's UDP source
// port.
//
//   const std::size_t bytes = wire_packet_bytes(path, run_packet_bytes(frame, i));
//   write_wire_packet(path, frame, i, payload, crc, {block, bytes});
#pragma once

#include <cstddef>

#include "uroce/packet.h"
#include "wire/crc32.h"
#include "wire/run.h"

namespace uroce::capture {

// `packet_bytes` are those from the BTH to the pad.
[[nodiscard]] std::size_t wire_packet_bytes(const Path& path, std::size_t packet_bytes);

// Packet `index` of a run, whose payload is the next of `payload`.
void write_wire_packet(const Path& path, const TxFrame& frame, unsigned index,
                       wire::PayloadCursor& payload, wire::Crc32Function crc, Bytes out);
// What is no packet by its own word, as it is.
void write_wire_bytes(const Path& path, ConstBytes bytes, wire::Crc32Function crc, Bytes out);

}  // namespace uroce::capture
