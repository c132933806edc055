// SPDX-License-Identifier: BSD-2-Clause
// A queue pair of the application: the core's QP with its memory, its locks and its place among the
// other objects.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "engine/doorbell.h"
#include "engine/engine.h"
#include "engine/spin_lock.h"
#include "engine/zeroed_memory.h"
#include "transport/qp.h"
#include "verbs/cq.h"
#include "verbs/pd.h"
#include "verbs/send_builder.h"
#include "verbs/srq.h"

namespace uroce::verbs {

// IBTA 10.8.2: work requests may be posted in RTS, SQD, SQE, and in ERR, where they are flushed.
inline bool takes_requests(transport::QpState state) { return state >= transport::QpState::kRts; }

struct Qp {
  Qp(Pd& domain, ibv_qp& public_part) : context(domain.context), pd(domain), handle(public_part) {}

  Context& context;
  Pd& pd;
  ibv_qp& handle;
  engine::SpinLock send_lock;
  engine::SpinLock receive_lock;
  ibv_qp_cap limits{};
  transport::Service service = transport::Service::kRc;
  bool signals_all = false;
  SendBuilder builder;
  engine::Doorbell doorbell;
  transport::Qp core;

  Cq* send_cq = nullptr;
  Cq* receive_cq = nullptr;
  Srq* srq = nullptr;
  engine::ZeroedMemory memory;  // both rings, the SRQ copy, the replay entries
  bool has_path = false;        // core.attributes.path is open
  transport::Peer* peer = nullptr;
  std::uint32_t events_given = 0;
};

// Null, and errno. `attributes.cap` becomes what was given.
[[nodiscard]] Qp* create_qp(Pd& pd, ibv_qp& handle, ibv_qp_init_attr& attributes, Cq* send_cq,
                            Cq* receive_cq, Srq* srq);
[[nodiscard]] int modify_qp(Qp& qp, const ibv_qp_attr& attributes, int mask);
void query_qp(Qp& qp, ibv_qp_attr& attributes, ibv_qp_init_attr& initial);
[[nodiscard]] int destroy_qp(Qp* qp);

[[nodiscard]] int post_send(Qp& qp, ibv_send_wr* request, ibv_send_wr** bad);
[[nodiscard]] int post_recv(Qp& qp, ibv_recv_wr* request, ibv_recv_wr** bad);

}  // namespace uroce::verbs
