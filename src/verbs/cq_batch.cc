// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/cq_batch.h"

#include <cerrno>

#include "engine/clock.h"
#include "verbs/cq.h"
#include "verbs/queue_guard.h"

namespace uroce::verbs {
namespace {

// False when there is nothing.
bool take_current(Cq& cq) {
  const QueueGuard consumers(cq.lock, cq.context.engine());
  if (!consumers.is_held()) return false;
  const transport::Cqe* entry = cq.queue.front();
  if (entry == nullptr) return false;
  cq.batch.entry = *entry;
  cq.batch.published = cq.queue.front_time();
  cq.queue.pop();
  return true;
}

[[gnu::cold]] void note_wall_clock(CqBatch& batch) {
  batch.wall_clock_offset =
      static_cast<std::int64_t>(engine::wall_clock_now()) - engine::monotonic_now().ns;
}

}  // namespace

int next_poll(Cq& cq) {
  if (cq.queue.is_empty()) cq.context.engine().progress();
  if (take_current(cq)) return 0;
  return cq.queue.has_overrun() || cq.context.engine().is_abandoned() ? EIO : ENOENT;
}

int start_poll(Cq& cq) {
  const bool locks = !cq.options.single_threaded;
  if (locks && !lock_queue(cq.batch.lock, cq.context.engine())) return EIO;
  const int error = next_poll(cq);
  if (error != 0) {
    if (locks) cq.batch.lock.unlock();
  } else if (cq.options.wall_clock) {
    note_wall_clock(cq.batch);
  }
  return error;
}

void end_poll(Cq& cq) {
  if (!cq.options.single_threaded) cq.batch.lock.unlock();
}

}  // namespace uroce::verbs
