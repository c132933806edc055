// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous events (IBTA 11.6.3). An object keeps a set of those that it raised and that nobody
// took yet, so a flood of one kind needs no memory.
#pragma once

#include <cstdint>

namespace uroce::transport {

// As ibv_event_type.
enum class EventType : std::uint8_t {
  kCqError = 0,
  kQpFatal = 1,
  kQpRequestError = 2,
  kQpAccessError = 3,
  kCommunicationEstablished = 4,
  kSqDrained = 5,
  kSrqError = 14,
  kSrqLimitReached = 15,
  kQpLastWqeReached = 16,
};

class CompletionQueue;
struct Qp;
struct Srq;

// Exactly one of the three is set.
struct Event {
  EventType type = EventType::kQpFatal;
  Qp* qp = nullptr;
  CompletionQueue* cq = nullptr;
  Srq* srq = nullptr;
};

}  // namespace uroce::transport
