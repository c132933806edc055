// SPDX-License-Identifier: BSD-2-Clause
// What the application holds of a queue pair. There is one such handle, but for the target of an
// XRC connection, which each opener has one of its own of (man ibv_open_qp): all of them are told
// of its events, and it ends with the last of them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "base/list.h"
#include "verbs/xrcd.h"

namespace uroce::verbs {

struct Qp;

struct QpHandle {
  // `through` is the domain that a target was made or opened with, and null for the others.
  QpHandle(ibv_qp& held, Xrcd* through) : part(held), xrcd(through) {
    if (xrcd != nullptr) xrcd->users.fetch_add(1, std::memory_order_relaxed);
  }
  ~QpHandle() {
    if (xrcd != nullptr) xrcd->users.fetch_sub(1, std::memory_order_release);
  }
  QpHandle(const QpHandle&) = delete;
  QpHandle& operator=(const QpHandle&) = delete;

  ibv_qp& part;
  Xrcd* xrcd;
  std::uint32_t events_given = 0;
  ListHook hook;  // in Qp::handles, guarded by the shard's lock
};

// Null, and errno: EINVAL when this context has no such target in this domain.
[[nodiscard]] Qp* open_qp(Xrcd& xrcd, ibv_qp& part, std::uint32_t number);
// False: `part` was the last, and the queue pair can be opened by nobody any more. True: the others
// go on, and `part` was told its last event.
[[nodiscard]] bool close_shared(Qp& qp, ibv_qp& part);
// Of one that is not live, where nobody is told anything. True: it was the last.
[[nodiscard]] bool drop_handle(Qp& qp, ibv_qp& part);
// Under the shard's lock: what its handles were told and nobody has read is gone.
void silence(Qp& qp);
// Until the application has acknowledged what the last handle was told.
void wait_for_last(Qp& qp);

}  // namespace uroce::verbs
