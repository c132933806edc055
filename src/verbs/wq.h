// SPDX-License-Identifier: BSD-2-Clause
// A receive work queue (man ibv_create_wq): to the core a raw packet queue pair that only receives,
// fed through an indirection table. `lock` serialises its posters.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "engine/doorbell.h"
#include "engine/spin_lock.h"
#include "transport/qp.h"
#include "verbs/cq.h"
#include "verbs/domain_memory.h"
#include "verbs/pd.h"

namespace uroce::verbs {

struct Wq final : Made {
  Wq(Pd& domain, Cq& queue, ibv_wq& public_part)
      : Made(Kind::kWq, domain.context), pd(domain), cq(queue), handle(public_part) {
    doorbell.qp = &core;
  }

  Pd& pd;
  Cq& cq;
  ibv_wq& handle;
  transport::Qp core;
  engine::SpinLock lock;
  engine::Doorbell doorbell;
  DomainMemory ring;
  std::uint32_t max_sges = 0;
  std::atomic<std::uint32_t> users{0};  // indirection tables
  std::uint32_t events_given = 0;

 private:
  void leave_device() override;
};

// Null, and errno: EOPNOTSUPP where there are no raw packets.
[[nodiscard]] Wq* create_wq(Context& context, ibv_wq& handle, Pd* pd, Cq* cq,
                            ibv_wq_init_attr& attributes);
[[nodiscard]] int modify_wq(Wq& wq, const ibv_wq_attr& attributes);
[[nodiscard]] ibv_wq_state state_of(const Wq& wq);
// 0, or EBUSY: a table has it.
[[nodiscard]] int destroy_wq(Wq* wq);
[[nodiscard]] int post_wq_recv(Wq& wq, ibv_recv_wr* request, ibv_recv_wr** bad);

}  // namespace uroce::verbs
