// SPDX-License-Identifier: BSD-2-Clause
// What can be wrong with a request that reached its QP, and what follows: one row a fault
// (IBTA 9.9.3, tables of responder error behaviour). The row says what the peer is told, what our
// own application is told, and whether the QP survives.
#pragma once

#include <array>
#include <cstdint>

#include "transport/events.h"
#include "transport/work_request.h"
#include "wire/aeth.h"

namespace uroce::transport {

enum class Fault : std::uint8_t {
  kNone,
  kNotReady,         // no receive WQE: RNR NAK, the QP stays as it is
  kSequence,         // a gap: NAK once, the QP stays as it is
  kInvalidRequest,   // opcode order, length against the path MTU, too many READs, alignment
  kAccessFlags,      // the QP does not allow the operation
  kRemoteKey,        // R_Key, its PD, rights or bounds
  kInvalidateKey,    // of nothing that the peer may invalidate
  kReceiveTooShort,  // the message is longer than the receive WQE
  kReceiveMemory,    // the receive WQE's own SGEs are not ours to write
};
inline constexpr std::size_t kFaultCount = 9;

struct FaultRow {
  wire::NakCode nak;        // meaningless for kNone and kNotReady
  bool fatal;               // the QP goes to ERR
  WcStatus receive_status;  // for the receive WQE in hand, if there is one
  EventType event;          // raised when no receive WQE carries the news
};

// Indexed by Fault.
extern const std::array<FaultRow, kFaultCount> kFaults;

// What the requester's work request says when the peer sent this NAK.
[[nodiscard]] WcStatus status_of(wire::NakCode nak);

}  // namespace uroce::transport
