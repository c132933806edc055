// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/cq.h"

#include <rdma/ib_user_verbs.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>

#include "verbs/limits.h"

namespace uroce::verbs {
namespace {

using engine::ZeroedMemory;
using transport::CompletionQueue;

int check_entries(int entries) {
  return entries >= 1 && static_cast<std::uint32_t>(entries) <= kCqesMax ? 0 : EINVAL;
}

ZeroedMemory ring_for(int entries) {
  const std::size_t slots = CompletionQueue::ring_slots(static_cast<std::uint32_t>(entries));
  return ZeroedMemory(slots * sizeof(transport::Cqe));
}

std::uint32_t take_back_notifications(Cq& cq) {
  if (cq.channel == nullptr) return 0;
  const auto element = reinterpret_cast<std::uintptr_t>(&cq.handle);
  return cq.channel->pipe.take_back<ib_uverbs_comp_event_desc>(
      [element](const ib_uverbs_comp_event_desc& event) { return event.cq_handle == element; });
}

Cq* failed(int error) {
  errno = error;
  return nullptr;
}

}  // namespace

Cq* create_cq(Context& context, ibv_cq& handle, int entries, ibv_comp_channel* channel,
              int vector) {
  engine::Engine& engine = context.engine();
  if (engine.is_abandoned()) return failed(EIO);
  if (const int error = check_entries(entries); error != 0) return failed(error);
  if (vector < 0 || vector >= kCompletionVectors) return failed(EINVAL);
  std::unique_ptr<Cq> cq(new (std::nothrow) Cq(context, handle));
  if (cq == nullptr) return failed(ENOMEM);
  cq->ring = ring_for(entries);
  if (!cq->ring) return failed(ENOMEM);
  if (!engine.quotas().cq.take()) return failed(ENOMEM);
  if (channel != nullptr) {
    cq->channel = context.use_channel(*channel);
    if (cq->channel == nullptr) {
      engine.quotas().cq.give_back();
      return failed(EMFILE);
    }
  }
  cq->queue.set_memory(cq->ring.as<transport::Cqe>(), static_cast<std::uint32_t>(entries));
  cq->queue.user = cq.get();
  handle.cqe = entries;
  return cq.release();
}

int resize_cq(Cq& cq, int entries) {
  engine::Engine& engine = cq.context.engine();
  if (engine.is_abandoned()) return EIO;
  if (const int error = check_entries(entries); error != 0) return error;
  ZeroedMemory ring = ring_for(entries);
  if (!ring) return ENOMEM;
  {
    engine::Engine::Section section(engine);
    const std::lock_guard consumers(cq.lock);
    // man ibv_resize_cq: not below what it holds.
    if (cq.queue.pending() > static_cast<std::uint32_t>(entries)) return EINVAL;
    cq.queue.move_to(ring.as<transport::Cqe>(), static_cast<std::uint32_t>(entries));
    swap(cq.ring, ring);
  }
  cq.handle.cqe = entries;
  return 0;
}

int destroy_cq(Cq* cq) {
  if (cq->users.load(std::memory_order_acquire) != 0) return EBUSY;
  engine::Engine& engine = cq->context.engine();
  if (!engine.is_abandoned()) {
    {
      engine::Engine::Section section(engine);
      section.hca().forget(cq->queue);
      cq->notifications_given -= take_back_notifications(*cq);
      cq->events_given -= cq->context.take_back_events(&cq->handle);
    }
    ibv_cq& handle = cq->handle;
    wait_for_acknowledgement(handle.mutex, handle.cond, handle.comp_events_completed,
                             cq->notifications_given);
    wait_for_acknowledgement(handle.mutex, handle.cond, handle.async_events_completed,
                             cq->events_given);
    if (cq->channel != nullptr) cq->context.release_channel(*cq->channel);
    engine.quotas().cq.give_back();
  }
  delete cq;
  return 0;
}

// --- Notifications -------------------------------------------------------------------------------

void Cq::write_notification() {
  if (channel == nullptr) return;
  if (channel->pipe.write(ib_uverbs_comp_event_desc{reinterpret_cast<std::uintptr_t>(&handle)})) {
    ++notifications_given;
  } else {
    ++notifications_waiting;
  }
}

void on_notification_read(Cq& cq) {
  engine::Engine& engine = cq.context.engine();
  if (engine.is_abandoned()) return;
  engine::Engine::Section section(engine);
  const std::uint32_t waiting = std::exchange(cq.notifications_waiting, 0);
  for (std::uint32_t i = 0; i < waiting; ++i) cq.write_notification();
}

int req_notify_cq(Cq& cq, int solicited_only) {
  engine::Engine& engine = cq.context.engine();
  if (engine.is_abandoned()) return EIO;
  cq.queue.arm(solicited_only != 0 ? transport::Arm::kSolicited : transport::Arm::kAny);
  engine.application_will_sleep();
  return 0;
}

}  // namespace uroce::verbs
