// SPDX-License-Identifier: BSD-2-Clause
// A queue pair: a plain struct. Its parts own their fields; the rules are free functions in the
// files named after what they do. Made and freed by verbs, touched under the shard's lock (but for
// `state`, which posts read, and the application's side of the rings).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.h"
#include "base/list.h"
#include "transport/completion.h"
#include "transport/deadlines.h"
#include "transport/qp_attributes.h"
#include "transport/rc_requester.h"
#include "transport/rc_responder.h"
#include "transport/work_queue.h"
#include "transport/work_request.h"
#include "uroce/time.h"

namespace uroce::transport {

using SendQueue = WorkQueue<SendWqe>;
using RecvQueue = WorkQueue<RecvWqe>;

struct Srq;
struct Spread;  // raw_packet.h

// The receive window of one process at one address, shared by the QPs that send to it: what a
// socket's buffer holds, whoever fills it. Unused where the link refuses frames by itself.
struct Peer {
  Gid address;
  std::uint32_t block = 0;
  std::uint32_t users = 0;
  std::uint32_t window_used = 0;
};

struct QpInit {
  Qpn number;
  PdId pd;
  Service service = Service::kRc;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  Srq* srq = nullptr;  // or null: its own receive queue
  XrcdId xrcd{};       // of a target
  bool signal_all = false;
  std::uint32_t max_inline = 0;
  std::uint16_t datagram_bytes = 0;  // UD: the most that one carries
  std::span<std::byte> send_memory;
  std::uint32_t send_capacity = 0, send_stride = 0;
  std::span<std::byte> receive_memory;
  std::uint32_t receive_capacity = 0, receive_stride = 0;
  RecvWqe* srq_copy = nullptr;  // room for one WQE of the SRQ, with its SGEs
  std::span<ReplayEntry> replay;
  const Spread* spread = nullptr;  // or null: what it receives is in its own queue
  void* user = nullptr;            // of verbs
};

struct Qp {
  // Read for every packet.
  Qpn number;
  std::atomic<QpState> state{QpState::kReset};
  Service service = Service::kRc;
  wire::Service wire_service = wire::Service::kRc;  // as its packets say it
  std::uint8_t link = 0;
  bool signal_all = false;
  std::uint16_t path_mtu = 256;
  PKey pkey;
  PdId pd;
  memory::Access access = memory::Access::kNone;
  RcRequester requester;
  RcResponder responder;

  SendQueue send_queue;
  RecvQueue receive_queue;
  std::uint32_t receive_next = 0;  // core: the WQE to hand out
  Srq* srq = nullptr;              // of an XRC target: that of the latest request (xrc_target.h)
  RecvWqe* srq_copy = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  Peer* peer = nullptr;

  Timer ack_timer{.qp = this};
  Timer early_timer{.qp = this};  // recovery.h

  // Which lists it is in.
  ListHook ready_hook;  // has, or may have, something to send
  ListHook event_hook;
  std::uint32_t pending_events = 0;
  ListHook stash_hook;      // has packets in the stash
  ListHook unsettled_hook;  // unreliable, with frames in the burst at hand
  ListHook target_hook;     // XRC target: in Srq::targets

  XrcdId xrcd;
  const Spread* spread = nullptr;
  QpAttributes attributes;
  bool sqd_notify_due = false;
  bool communication_established = false;
  bool last_wqe_reported = false;
  bool loss_reported = false;  // of a completion
  void* user = nullptr;
};

struct Srq {
  RecvQueue queue;
  std::uint32_t next = 0;   // core: the WQE to hand out
  std::uint32_t limit = 0;  // below so many, kSrqLimitReached is raised once; 0: disarmed
  PdId pd;
  // Of XRC: by what peers name it, whose targets may use it, and where receives complete.
  Qpn number;
  XrcdId xrcd;
  CompletionQueue* cq = nullptr;
  List<Qp, &Qp::target_hook> targets;  // that used it last
  void* user = nullptr;
  std::uint32_t pending_events = 0;
  ListHook event_hook;
};

// What a peer's R_Key is looked up for.
inline memory::Accessor accessor(const Qp& qp) { return {qp.pd, qp.number}; }

}  // namespace uroce::transport
