// SPDX-License-Identifier: BSD-2-Clause
// The extended way to poll (man ibv_create_cq_ex): between start_poll and end_poll one completion
// after another is the current one, and its fields are read by functions.
//
// The current completion is a copy, taken out of the ring when it becomes current. So the ring's
// lock is held for a moment only, ibv_poll_cq works beside a batch, and within a batch a thread may
// destroy and modify what it likes. A lock of its own keeps other batches out.
#pragma once

#include <cstdint>

#include "engine/spin_lock.h"
#include "transport/completion.h"
#include "uroce/time.h"

namespace uroce::verbs {

struct Cq;

struct CqBatch {
  engine::SpinLock lock;
  transport::Cqe entry;                // the current one
  Instant published;                   // visible since then; if the queue has timestamps
  std::int64_t wall_clock_offset = 0;  // from those to the time of day, this batch's
};

// man ibv_create_cq_ex: 0, ENOENT when there is nothing, or EIO when there never will be.
[[nodiscard]] int start_poll(Cq& cq);
[[nodiscard]] int next_poll(Cq& cq);
void end_poll(Cq& cq);

}  // namespace uroce::verbs
