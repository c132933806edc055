// SPDX-License-Identifier: BSD-2-Clause
// Raw packet queue pairs: Ethernet frames, sent as the application made them and received as they
// came, without FCS. Flows (steering/flow_table.h) say whose a frame is. Nothing is acknowledged,
// so sending follows the rules of the unreliable services; a frame for which no receive waits is
// lost, as a datagram is.
//
// A receive work queue is a raw packet QP that only receives: RESET, RTR and ERR are its states. A
// QP with a spread has no queue of its own, and gives each frame to one of those.
#pragma once

#include <span>

#include "steering/hash.h"
#include "transport/burst.h"
#include "transport/hca_state.h"

namespace uroce::transport {

// An indirection table, and how a frame finds its place in it; of verbs.
struct Spread {
  steering::HashRule rule;
  std::span<Qp* const> queues;  // a power of two
};

// One that is a receive work queue by itself.
inline bool is_receive_queue(const Qp& qp) {
  return qp.service == Service::kRawPacket && qp.send_cq == nullptr && qp.spread == nullptr;
}

// One frame into the burst; false when there is none to send now.
[[nodiscard]] bool next_raw_packet(HcaState& hca, Qp& qp, TxBurst& burst);

// `is_roce`: a packet for us is in it.
void on_raw_packet(HcaState& hca, ConstBytes frame, bool is_roce);

}  // namespace uroce::transport
