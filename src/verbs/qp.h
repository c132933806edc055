// SPDX-License-Identifier: BSD-2-Clause
// A queue pair of the application: the core's QP with its memory, its locks and its place among the
// other objects.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "base/list.h"
#include "engine/doorbell.h"
#include "engine/engine.h"
#include "engine/spin_lock.h"
#include "engine/zeroed_memory.h"
#include "transport/multicast.h"
#include "transport/qp.h"
#include "transport/raw_packet.h"
#include "verbs/cq.h"
#include "verbs/domain_memory.h"
#include "verbs/pd.h"
#include "verbs/qp_handle.h"
#include "verbs/rwq_table.h"
#include "verbs/send_builder.h"
#include "verbs/srq.h"
#include "verbs/xrcd.h"

namespace uroce::verbs {

// IBTA 10.8.2: work requests may be posted in RTS, SQD, SQE, and in ERR, where they are flushed.
inline bool takes_requests(transport::QpState state) { return state >= transport::QpState::kRts; }

// What a queue pair is made of. The target of an XRC connection has only a domain; its initiator
// receives nothing. With an indirection table (of raw packets) what it receives is in the table's
// queues, and it sends nothing.
struct QpParts {
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* receive_cq = nullptr;
  Srq* srq = nullptr;  // or null
  Xrcd* xrcd = nullptr;
  bool is_management = false;  // QP1: a datagram queue pair otherwise
  RwqTable* table = nullptr;   // or null
  steering::HashRule hash{};   // by which frames are spread over it
};

struct Qp final : Made {
  Qp(Context& where, const QpParts& of) : Made(Kind::kQp, where), parts(of) {}
  ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  QpParts parts;
  List<QpHandle, &QpHandle::hook> handles;
  bool is_closing = false;  // its last handle is
  // That it is in; guarded by the shard's lock.
  List<transport::MulticastMember, &transport::MulticastMember::qp_hook> groups;
  std::atomic<std::uint32_t> flows{0};  // whose target it is
  engine::SpinLock send_lock;
  engine::SpinLock receive_lock;
  ibv_qp_cap limits{};
  transport::Service service = transport::Service::kRc;
  bool signals_all = false;
  transport::Spread spread;  // over the table, if there is one
  SendBuilder builder;
  engine::Doorbell doorbell;
  transport::Qp core;

  DomainMemory memory;          // both rings, the SRQ copy
  engine::ZeroedMemory replay;  // for as many requests as the peer may have open, once that is said
  bool has_path = false;        // core.attributes.path is open
  transport::Peer* peer = nullptr;

 private:
  void leave_device() override;
};

// Null, and errno. `attributes.cap` becomes what was given. Of `parts` only what the type has is
// looked at.
[[nodiscard]] Qp* create_qp(Context& context, const QpParts& parts, ibv_qp& handle,
                            ibv_qp_init_attr& attributes);
[[nodiscard]] int modify_qp(Qp& qp, const ibv_qp_attr& attributes, int mask);
void query_qp(Qp& qp, ibv_qp_attr& attributes, ibv_qp_init_attr& initial);
// The application gives `handle` up; the last of them ends the queue pair. EBUSY: it is in a
// multicast group, or a flow steers to it.
[[nodiscard]] int destroy_qp(Qp* qp, ibv_qp& handle);

[[nodiscard]] int post_send(Qp& qp, ibv_send_wr* request, ibv_send_wr** bad);
[[nodiscard]] int post_recv(Qp& qp, ibv_recv_wr* request, ibv_recv_wr** bad);

}  // namespace uroce::verbs
