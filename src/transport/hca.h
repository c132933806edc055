// SPDX-License-Identifier: BSD-2-Clause
// The transport core of one device (or of one shard of it): packets, time and doorbells in; frames,
// completions and events out. It opens nothing, waits for nothing, allocates nothing and knows no
// clock, so the engine, the simulator and the fuzzers run the same object code.
//
// Every call is made by whoever holds the shard's lock. A turn is:
//
//   hca.on_packets(now, link, packets);          // as long as rx_burst gives some
//   hca.on_timer(now);
//   while (hca.poll_transmit(now, link, burst))  // for each link
//     if (datapath.tx_burst(burst.frames()) != 0) hca.on_refused(now, burst.frames());
//   hca.publish_completions();
//   while (CompletionQueue* cq = hca.poll_notification()) ...   // write to its channel
//   while (hca.poll_event(event)) ...
//
// Input never sends: it records what is due. Memory (rings, tables) is handed in as spans and stays
// the caller's; the calls that may need more of it say so.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/list.h"
#include "memory/mr_table.h"
#include "transport/burst.h"
#include "transport/counters.h"
#include "transport/deadlines.h"
#include "transport/demux.h"
#include "transport/events.h"
#include "transport/qp.h"
#include "uroce/packet.h"
#include "uroce/time.h"

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
};

// Asked before an ACK timer counts: is the peer only waiting for a processor, with our frames still
// unread in shared memory? Then nothing was lost, and retrying would be no help.
class StallOracle {
 public:
  virtual bool peer_stalled(LinkId link, const Path& path) const = 0;

 protected:
  ~StallOracle() = default;
};

class Hca {
 public:
  Hca() = default;
  Hca(const Hca&) = delete;
  Hca& operator=(const Hca&) = delete;

  // --- Set-up ----------------------------------------------------------------------------------
  void set_link(LinkId link, const LinkFacts& facts) { links_[link].facts = facts; }
  void set_stall_oracle(const StallOracle* oracle) { oracle_ = oracle; }
  [[nodiscard]] memory::MrTable& regions() { return regions_; }
  [[nodiscard]] Demux& demux() { return demux_; }
  [[nodiscard]] Deadlines& deadlines() { return deadlines_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }

  // --- Queue pairs -----------------------------------------------------------------------------
  // `qp` is fresh, its number unique, the demux has its block and the deadlines have room.
  void create_qp(Qp& qp, const QpInit& init);
  // Forgets the QP: no pointer to it remains. Its completions stay in the CQs (see purge).
  void destroy_qp(Qp& qp);
  // 0, or an errno with nothing changed (IBTA 11.2.5.2 and its table of attributes). The caller has
  // opened `attributes.path` on `attributes.link` when the mask has kAddressVector. `peer` is
  // where QPs to that destination share their window; null where the link has none.
  [[nodiscard]] int modify_qp(Instant now, Qp& qp, const QpAttributes& attributes,
                              std::uint32_t mask, Peer* peer);
  // What ibv_query_qp reports, current state included.
  [[nodiscard]] QpAttributes query_qp(const Qp& qp) const;
  // SQD: everything that was begun is finished.
  [[nodiscard]] bool is_drained(const Qp& qp) const;

  // --- Inputs ----------------------------------------------------------------------------------
  void on_packets(Instant now, LinkId link, std::span<const RxPacket> packets);
  void on_timer(Instant now);
  // Something was posted to the QP's send queue (or to its receive queue in state ERR).
  void on_doorbell(Instant now, Qp& qp);
  // Frames of the last poll_transmit that tx_burst marked: they will be sent later.
  void on_refused(Instant now, std::span<TxFrame> frames);
  // A QP that was refused waits for this; once a turn and link, before poll_transmit.
  void retry_refused(LinkId link);

  // --- Outputs ---------------------------------------------------------------------------------
  // Fills the (cleared) burst; false when there is nothing to send.
  [[nodiscard]] bool poll_transmit(Instant now, LinkId link, TxBurst& burst);
  // No timer expires before this.
  [[nodiscard]] Instant next_deadline() const { return deadlines_.next(); }
  // Responses are due that no datapath has taken yet: completions should wait for them.
  [[nodiscard]] bool has_responses_due() const;
  void publish_completions();
  // Queues whose armed notification is due, one at a time; null when there are no more.
  [[nodiscard]] CompletionQueue* poll_notification();
  [[nodiscard]] bool poll_event(Event& event);
  // Before an object is freed: its events and notifications that nobody took are gone.
  void forget(CompletionQueue& cq);
  void forget(Srq& srq);
  // Raises kSrqLimitReached if fewer than srq.limit are left.
  void check_srq_limit(Srq& srq);

 private:
  friend class Rc;  // the RC rules, split over four files
  struct LinkState {
    LinkFacts facts;
    List<Qp, &Qp::ready_hook> ready;
    List<Qp, &Qp::ready_hook> refused;
  };

  std::array<LinkState, kLinkCount> links_;
  Demux demux_;
  memory::MrTable regions_;
  Deadlines deadlines_;
  Counters counters_;
  const StallOracle* oracle_ = nullptr;
  List<CompletionQueue, &CompletionQueue::dirty_hook> dirty_;
  List<CompletionQueue, &CompletionQueue::notify_hook> notify_;
  List<CompletionQueue, &CompletionQueue::event_hook> cq_events_;
  List<Qp, &Qp::event_hook> qp_events_;
  List<Srq, &Srq::event_hook> srq_events_;
};

}  // namespace uroce::transport
