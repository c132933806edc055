// SPDX-License-Identifier: BSD-2-Clause
// A shared receive queue of the application. `lock` serialises its posters. One of XRC has a
// number, by which the peers of its domain name it, and a completion queue of its own.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "engine/spin_lock.h"
#include "transport/qp.h"
#include "verbs/cq.h"
#include "verbs/domain_memory.h"
#include "verbs/pd.h"
#include "verbs/xrcd.h"

namespace uroce::verbs {

struct Srq final : Made {
  Srq(Pd& domain, ibv_srq& public_part)
      : Made(Kind::kSrq, domain.context), pd(domain), handle(public_part) {}

  Pd& pd;
  ibv_srq& handle;
  transport::Srq core;
  engine::SpinLock lock;
  DomainMemory ring;
  std::uint32_t max_sges = 0;
  std::atomic<std::uint32_t> users{0};  // QPs
  std::uint32_t events_given = 0;
  // Of XRC.
  Xrcd* xrcd = nullptr;
  Cq* cq = nullptr;

 private:
  void leave_device() override;
};

// Null, and errno. The capabilities given are written to `attributes`.
[[nodiscard]] Srq* create_srq(Pd& pd, ibv_srq& handle, ibv_srq_attr& attributes);
[[nodiscard]] Srq* create_xrc_srq(Pd& pd, ibv_srq& handle, ibv_srq_attr& attributes, Xrcd* xrcd,
                                  Cq* cq);
[[nodiscard]] int modify_srq(Srq& srq, const ibv_srq_attr& attributes, int mask);
void query_srq(Srq& srq, ibv_srq_attr& attributes);
[[nodiscard]] int destroy_srq(Srq* srq);
[[nodiscard]] int post_srq_recv(Srq& srq, ibv_recv_wr* request, ibv_recv_wr** bad);

}  // namespace uroce::verbs
