// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/cq.h"

#include <rdma/ib_user_verbs.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>

#include "verbs/failed.h"
#include "verbs/limits.h"

namespace uroce::verbs {
namespace {

using transport::CompletionQueue;

int check_entries(int entries) {
  return entries >= 1 && static_cast<std::uint32_t>(entries) <= kCqesMax ? 0 : EINVAL;
}

// A completion queue's memory, and how it is divided.
struct Ring {
  Ring(int entries, const CqOptions& options)
      : capacity(static_cast<std::uint32_t>(entries)),
        slots(CompletionQueue::ring_slots(capacity)),
        times_bytes(options.timestamps ? slots * sizeof(Instant) : 0),
        memory(options.domain, slots * sizeof(transport::Cqe) + times_bytes, ResourceType::kCq) {}

  [[nodiscard]] std::span<transport::Cqe> entries() const {
    return {reinterpret_cast<transport::Cqe*>(memory.bytes().data()), slots};
  }
  [[nodiscard]] std::span<Instant> times() const {
    const std::span<std::byte> bytes = memory.bytes().last(times_bytes);
    return {reinterpret_cast<Instant*>(bytes.data()), bytes.size() / sizeof(Instant)};
  }

  std::uint32_t capacity;
  std::size_t slots, times_bytes;
  DomainMemory memory;
};

// Nobody has read them, and nobody will: there is room for those of others.
void take_back_notifications(Cq& cq) {
  if (cq.channel == nullptr) return;
  Notifications& own = cq.notifications;
  own.waiting_hook.unlink();
  own.given -= cq.channel->pipe.take_back<ib_uverbs_comp_event_desc>(
      [&own](const ib_uverbs_comp_event_desc& event) { return event.cq_handle == own.element; });
  cq.channel->write_waiting();
}

}  // namespace

int to_cq_options(const ibv_cq_init_attr_ex& attributes, CqOptions& options) {
  constexpr std::uint64_t kTimes =
      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  constexpr std::uint64_t kFields = std::uint64_t{IBV_WC_STANDARD_FLAGS} | kTimes;
  constexpr std::uint32_t kMasks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  constexpr std::uint32_t kFlags =
      IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  if ((attributes.wc_flags & ~kFields) != 0) return EOPNOTSUPP;
  if ((attributes.comp_mask & ~kMasks) != 0) return EINVAL;
  const bool has_flags = (attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
  const std::uint32_t flags = has_flags ? attributes.flags : 0;
  if ((flags & ~kFlags) != 0) return EOPNOTSUPP;
  options = {
      .timestamps = (attributes.wc_flags & kTimes) != 0,
      .wall_clock = (attributes.wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0,
      .single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0,
      .ignore_overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0};
  return 0;
}

Cq* create_cq(Context& context, ibv_cq& handle, int entries, ibv_comp_channel* channel, int vector,
              const CqOptions& options) {
  engine::Engine& engine = context.engine();
  if (engine.is_abandoned()) return failed(EIO);
  if (const int error = check_entries(entries); error != 0) return failed(error);
  if (vector < 0 || vector >= kCompletionVectors) return failed(EINVAL);
  std::unique_ptr<Cq> cq(new (std::nothrow) Cq(context, handle, options));
  if (cq == nullptr) return failed(ENOMEM);
  Ring ring(entries, options);
  if (!ring.memory) return failed(ENOMEM);
  if (!engine.quotas().cq.take()) return failed(ENOMEM);
  if (channel != nullptr) {
    cq->channel = context.use_channel(*channel);
    if (cq->channel == nullptr) {
      engine.quotas().cq.give_back();
      return failed(EMFILE);
    }
  }
  cq->queue.set_memory(ring.entries(), ring.capacity, ring.times());
  swap(cq->ring, ring.memory);
  if (options.ignore_overrun) cq->queue.ignore_overrun();
  if (options.timestamps) engine::Engine::Section(engine).count_timestamped(1);
  cq->queue.user = cq.get();
  handle.cqe = entries;
  cq->begin();
  return cq.release();
}

int resize_cq(Cq& cq, int entries) {
  engine::Engine& engine = cq.context.engine();
  if (engine.is_abandoned()) return EIO;
  if (const int error = check_entries(entries); error != 0) return error;
  Ring ring(entries, cq.options);
  if (!ring.memory) return ENOMEM;
  {
    engine::Engine::Section section(engine);
    const std::lock_guard consumers(cq.lock);
    // man ibv_resize_cq: not below what it holds.
    if (cq.queue.pending() > ring.capacity) return EINVAL;
    cq.queue.move_to(ring.entries(), ring.capacity, ring.times());
    swap(cq.ring, ring.memory);
  }
  cq.handle.cqe = entries;
  return 0;
}

int modify_cq(Cq& cq, const ibv_modify_cq_attr& attributes) {
  engine::Engine& engine = cq.context.engine();
  if (engine.is_abandoned()) return EIO;
  if (attributes.attr_mask != IBV_CQ_ATTR_MODERATE) return EINVAL;
  const ibv_moderate_cq& wish = attributes.moderate;
  engine::Engine::Section section(engine);
  section.hca().moderate(section.now(), cq.queue, wish.cq_count, microseconds(wish.cq_period));
  return 0;
}

void Cq::leave_device() {
  engine::Engine& engine = context.engine();
  {
    engine::Engine::Section section(engine);
    section.hca().forget(queue);
    if (options.timestamps) section.count_timestamped(-1);
    take_back_notifications(*this);
    events_given -= context.take_back_events(&handle);
  }
  engine.quotas().cq.give_back();
}

int destroy_cq(Cq* cq) {
  if (cq->users.load(std::memory_order_acquire) != 0) return EBUSY;
  if (cq->is_live()) {
    cq->end();
    ibv_cq& handle = cq->handle;
    wait_for_acknowledgement(handle.mutex, handle.cond, handle.comp_events_completed,
                             cq->notifications.given);
    wait_for_acknowledgement(handle.mutex, handle.cond, handle.async_events_completed,
                             cq->events_given);
    // Not before: who has read a notification comes here for the next.
    if (cq->channel != nullptr) cq->context.release_channel(*cq->channel);
  }
  delete cq;
  return 0;
}

// --- Notifications -------------------------------------------------------------------------------

void on_notification_read(Cq& cq) {
  engine::Engine& engine = cq.context.engine();
  if (engine.is_abandoned() || cq.channel == nullptr) return;
  engine::Engine::Section section(engine);
  cq.channel->write_waiting();
}

int req_notify_cq(Cq& cq, int solicited_only) {
  engine::Engine& engine = cq.context.engine();
  if (engine.is_abandoned()) return EIO;
  cq.queue.arm(solicited_only != 0 ? transport::Arm::kSolicited : transport::Arm::kAny);
  engine.application_will_sleep(cq.queue);
  return 0;
}

}  // namespace uroce::verbs
