// SPDX-License-Identifier: BSD-2-Clause
// ibv_poll_cq: what is there is taken; only when nothing is, a turn of the engine is made first.
#include <algorithm>

#include "engine/engine.h"
#include "verbs/cq.h"
#include "verbs/queue_guard.h"
#include "verbs/translate.h"

namespace uroce::verbs {
namespace {

int take(Cq& cq, int count, ibv_wc* completions) {
  int taken = 0;
  while (taken < count) {
    const transport::Cqe* entry = cq.queue.front();
    if (entry == nullptr) break;
    to_ibv_wc(*entry, completions[taken++]);
    cq.queue.pop();
  }
  return taken;
}

int take_locked(Cq& cq, int count, ibv_wc* completions) {
  const QueueGuard consumers(cq.lock, cq.context.engine());
  if (!consumers.is_held()) return -1;
  return take(cq, count, completions);
}

}  // namespace

int poll_cq(Cq& cq, int count, ibv_wc* completions) {
  // man ibv_poll_cq: an overrun queue gives no more.
  if (cq.queue.is_empty()) {
    cq.context.engine().progress();
    if (cq.queue.is_empty()) {
      const bool is_dead = cq.queue.has_overrun() || cq.context.engine().is_abandoned();
      return is_dead ? -1 : 0;
    }
  }
  return take_locked(cq, count, completions);
}

}  // namespace uroce::verbs
