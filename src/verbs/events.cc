// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/events.h"

#include <infiniband/verbs.h>

#include "engine/engine.h"
#include "transport/raw_packet.h"
#include "verbs/cq.h"
#include "verbs/qp.h"
#include "verbs/srq.h"
#include "verbs/wq.h"

namespace uroce::verbs {
namespace {

template <typename Object>
void write(Object& object, transport::EventType type) {
  const auto element = reinterpret_cast<std::uintptr_t>(&object.handle);
  if (object.context.write_event(element, static_cast<std::uint32_t>(type))) ++object.events_given;
}

// The engine's and the core's numbers are written as they are.
static_assert(static_cast<int>(transport::EventType::kCqError) == IBV_EVENT_CQ_ERR);
static_assert(static_cast<int>(transport::EventType::kQpFatal) == IBV_EVENT_QP_FATAL);
static_assert(static_cast<int>(transport::EventType::kQpRequestError) == IBV_EVENT_QP_REQ_ERR);
static_assert(static_cast<int>(transport::EventType::kQpAccessError) == IBV_EVENT_QP_ACCESS_ERR);
static_assert(static_cast<int>(transport::EventType::kCommunicationEstablished) ==
              IBV_EVENT_COMM_EST);
static_assert(static_cast<int>(transport::EventType::kSqDrained) == IBV_EVENT_SQ_DRAINED);
static_assert(static_cast<int>(transport::EventType::kSrqError) == IBV_EVENT_SRQ_ERR);
static_assert(static_cast<int>(transport::EventType::kSrqLimitReached) ==
              IBV_EVENT_SRQ_LIMIT_REACHED);
static_assert(static_cast<int>(transport::EventType::kQpLastWqeReached) ==
              IBV_EVENT_QP_LAST_WQE_REACHED);
static_assert(static_cast<int>(engine::PortEvent::kActive) == IBV_EVENT_PORT_ACTIVE);
static_assert(static_cast<int>(engine::PortEvent::kError) == IBV_EVENT_PORT_ERR);
static_assert(static_cast<int>(engine::PortEvent::kGidChange) == IBV_EVENT_GID_CHANGE);

// A receive work queue has one, the end.
void write_fatal(Wq& wq) {
  const auto element = reinterpret_cast<std::uintptr_t>(&wq.handle);
  if (wq.context.write_event(element, IBV_EVENT_WQ_FATAL)) ++wq.events_given;
}

void write(Qp& qp, transport::EventType type) {
  for (QpHandle* h = qp.handles.front(); h != nullptr; h = qp.handles.next(*h)) {
    const auto element = reinterpret_cast<std::uintptr_t>(&h->part);
    if (qp.context.write_event(element, static_cast<std::uint32_t>(type))) ++h->events_given;
  }
}

}  // namespace

void tell_completion(transport::CompletionQueue& queue) {
  static_cast<Cq*>(queue.user)->write_notification();
}

void tell_event(const transport::Event& event) {
  if (event.qp != nullptr && transport::is_receive_queue(*event.qp)) {
    write_fatal(*static_cast<Wq*>(event.qp->user));
  } else if (event.qp != nullptr) {
    write(*static_cast<Qp*>(event.qp->user), event.type);
  }
  if (event.cq != nullptr) write(*static_cast<Cq*>(event.cq->user), event.type);
  if (event.srq != nullptr) write(*static_cast<Srq*>(event.srq->user), event.type);
}

}  // namespace uroce::verbs
