// SPDX-License-Identifier: BSD-2-Clause
// A completion queue of the application. `lock` serialises its consumers; the producer is the core,
// under the shard's lock. Whoever needs both takes the shard's lock first: consumers only ever try
// that one.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "engine/spin_lock.h"
#include "transport/completion.h"
#include "verbs/context.h"
#include "verbs/cq_batch.h"
#include "verbs/domain_memory.h"

namespace uroce::verbs {

// What ibv_create_cq_ex may ask for beyond ibv_create_cq.
struct CqOptions {
  bool timestamps = false;
  bool wall_clock = false;  // ... and read as time of day
  bool single_threaded = false;
  bool ignore_overrun = false;
  Pd* domain = nullptr;  // a parent domain, for its allocator
};

struct Cq final : Made {
  Cq(Context& owner, ibv_cq& public_part, const CqOptions& wishes)
      : Made(Kind::kCq, owner), handle(public_part), options(wishes) {
    notifications.element = reinterpret_cast<std::uintptr_t>(&handle);
  }

  // Under the shard's lock.
  void write_notification() {
    if (channel != nullptr) channel->write(notifications);
  }

  ibv_cq& handle;
  const CqOptions options;
  transport::CompletionQueue queue;
  engine::SpinLock lock;
  DomainMemory ring;  // the entries, then their times if they have any
  CompletionChannel* channel = nullptr;
  std::atomic<std::uint32_t> users{0};  // QPs
  Notifications notifications;
  std::uint32_t events_given = 0;  // asynchronous ones
  CqBatch batch;

 private:
  void leave_device() override;
};

// Null, and errno.
[[nodiscard]] Cq* create_cq(Context& context, ibv_cq& handle, int entries,
                            ibv_comp_channel* channel, int vector, const CqOptions& options = {});
// 0, EOPNOTSUPP for what no completion of ours has, or EINVAL.
[[nodiscard]] int to_cq_options(const ibv_cq_init_attr_ex& attributes, CqOptions& options);
[[nodiscard]] int resize_cq(Cq& cq, int entries);
// Moderation of notifications (transport/moderation.h).
[[nodiscard]] int modify_cq(Cq& cq, const ibv_modify_cq_attr& attributes);
// 0 or EBUSY; waits until the events that were read are acknowledged.
[[nodiscard]] int destroy_cq(Cq* cq);

// man ibv_poll_cq: how many, or negative.
[[nodiscard]] int poll_cq(Cq& cq, int count, ibv_wc* completions);
[[nodiscard]] int req_notify_cq(Cq& cq, int solicited_only);
// After the application has read a notification: there is room for those that wait.
void on_notification_read(Cq& cq);

}  // namespace uroce::verbs
