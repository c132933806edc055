// SPDX-License-Identifier: BSD-2-Clause
// What the core of one device holds, as a plain struct: the rules in the other files of this folder
// are free functions over it and a Qp. Nobody outside of transport/ sees it but through Hca.
#pragma once

#include <array>
#include <cstdint>

#include "base/list.h"
#include "memory/mr_table.h"
#include "steering/flow_table.h"
#include "transport/counters.h"
#include "transport/deadlines.h"
#include "transport/demux.h"
#include "transport/events.h"
#include "transport/multicast.h"
#include "transport/qp.h"
#include "transport/stash.h"

namespace uroce::transport {

using LinkId = std::uint8_t;
inline constexpr LinkId kLocalLink = 0;
inline constexpr LinkId kUplink = 1;
inline constexpr std::size_t kLinkCount = 2;

// What the core must know of a datapath.
struct LinkFacts {
  std::uint16_t max_run_packets = 1;
  std::uint32_t max_run_bytes = 4096;
  std::uint32_t peer_window_bytes = 0;  // 0: the link refuses frames by itself
  bool trusted_memory = false;
  std::uint16_t max_frame_bytes = 0;  // raw packets: without a VLAN tag
};

// What the core cannot know by itself. Without one, both are no.
class HostOracle {
 public:
  // Asked before an ACK timer counts: is the peer only waiting for a processor, with our frames
  // still unread in shared memory? Then nothing was lost, and retrying would be no help.
  [[nodiscard]] virtual bool peer_stalled(LinkId link, const Path& path) const = 0;
  // Asked for multicast: does what has this source come from here?
  [[nodiscard]] virtual bool is_own_address(const Gid& source) const = 0;

 protected:
  ~HostOracle() = default;
};

struct LinkState {
  LinkFacts facts;
  List<Qp, &Qp::ready_hook> ready;    // may have something to send
  List<Qp, &Qp::ready_hook> refused;  // had a frame refused: ready again next turn
  List<Qp, &Qp::ready_hook> waiting;  // for room in a receive window (a peer's, or our own)
  std::uint32_t reads_in_flight = 0;  // bytes of READ responses asked for: our own window
};

struct HcaState {
  HcaState() = default;
  // Counts there instead of here.
  explicit HcaState(Counters& elsewhere) : counters(elsewhere) {}

  std::array<LinkState, kLinkCount> links;
  Demux demux;
  MulticastTable multicast;
  steering::FlowTable flows;  // their targets are QPs
  memory::MrTable regions;
  Deadlines deadlines;        // ACK timers and RNR waits
  Deadlines early_deadlines;  // recovery.h
  Stash stash;
  Counters own_counters;
  Counters& counters = own_counters;
  std::uint64_t counted_and_refused = 0;  // packets, of those that are sent again
  const HostOracle* oracle = nullptr;
  std::uint32_t responses_due = 0;          // QPs that owe a response
  List<Qp, &Qp::unsettled_hook> unsettled;  // unreliable.h
  List<CompletionQueue, &CompletionQueue::dirty_hook> dirty;
  List<CompletionQueue, &CompletionQueue::notify_hook> notify;
  List<CompletionQueue, &CompletionQueue::delay_hook> delayed;  // announced later
  Instant next_announcement = Instant::never();                 // not before
  List<CompletionQueue, &CompletionQueue::event_hook> cq_events;
  List<Qp, &Qp::event_hook> qp_events;
  List<Srq, &Srq::event_hook> srq_events;
};

// To be asked for frames in the next poll_transmit. A QP that waits for room may owe a response
// meanwhile, which needs none.
inline void make_ready(HcaState& hca, Qp& qp) {
  if (qp.requester.waiting_for_window) {
    qp.requester.waiting_for_window = false;
    qp.ready_hook.unlink();
  }
  hca.links[qp.link].ready.push_back(qp);
}

}  // namespace uroce::transport
