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
//   hca.publish_completions(now);
//   while (CompletionQueue* cq = hca.poll_notification()) ...   // write to its channel
//   while (hca.poll_event(event)) ...
//
// Input never sends: it records what is due. Memory (rings, tables) is handed in as spans and stays
// the caller's; the calls that may need more of it say so.
#pragma once

#include <cstdint>
#include <span>

#include "transport/burst.h"
#include "transport/hca_state.h"
#include "uroce/packet.h"
#include "uroce/time.h"
#include "wire/parse.h"

namespace uroce::transport {

class Hca {
 public:
  Hca() = default;
  // Counts in `counters`, which outlive it.
  explicit Hca(Counters& counters) : state_(counters) {}
  Hca(const Hca&) = delete;
  Hca& operator=(const Hca&) = delete;

  // --- Set-up ----------------------------------------------------------------------------------
  void set_link(LinkId link, const LinkFacts& facts) { state_.links[link].facts = facts; }
  void set_oracle(const HostOracle* oracle) { state_.oracle = oracle; }
  [[nodiscard]] memory::MrTable& regions() { return state_.regions; }
  [[nodiscard]] Demux& demux() { return state_.demux; }
  [[nodiscard]] MulticastTable& multicast() { return state_.multicast; }
  [[nodiscard]] steering::FlowTable& flows() { return state_.flows; }
  [[nodiscard]] Deadlines& deadlines() { return state_.deadlines; }
  [[nodiscard]] Deadlines& early_deadlines() { return state_.early_deadlines; }
  [[nodiscard]] Stash& stash() { return state_.stash; }
  [[nodiscard]] const Counters& counters() const { return state_.counters; }

  // --- Queue pairs -----------------------------------------------------------------------------
  // `qp` is fresh, its number unique, the demux has its block and the deadlines have room.
  void create_qp(Qp& qp, const QpInit& init);
  // Of XRC: from now on peers may name it. Its number is unique, as a QP's.
  void insert_srq(Srq& srq);
  // Forgets the QP: no pointer to it remains. Its completions stay in the CQs (see purge).
  void destroy_qp(Qp& qp);
  // 0, or an errno with nothing changed (IBTA 11.2.5.2 and its table of attributes). The caller has
  // opened `attributes.path` on `attributes.link` when the mask has kAddressVector. `peer` is
  // where QPs to that destination share their window; null where the link has none.
  [[nodiscard]] int modify_qp(Instant now, Qp& qp, const QpAttributes& attributes,
                              std::uint32_t mask, Peer* peer);
  // What ibv_query_qp reports, current state included.
  [[nodiscard]] QpAttributes query_qp(const Qp& qp) const;
  // It owes an answer that no datapath has taken yet; or its path has lost packets, so its last
  // answer may not have arrived, and the peer has not been silent for so long yet.
  [[nodiscard]] bool may_be_asked_again(Instant now, const Qp& qp, Duration silence) const;
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
  // A QP waits for poll_transmit.
  [[nodiscard]] bool has_frames_due() const;
  // No output is due but what a timer may bring.
  [[nodiscard]] bool is_quiet() const;
  // No timer expires before this ...
  [[nodiscard]] Instant next_deadline() const { return state_.deadlines.next(); }
  // ... but those for early retransmission, which is worth a look and not worth waking anyone.
  [[nodiscard]] Instant next_early_deadline() const { return state_.early_deadlines.next(); }
  // Nothing is held for any QP, as when all are destroyed.
  [[nodiscard]] bool is_unused() const;
  // Responses are due that no datapath has taken yet: completions should wait for them.
  [[nodiscard]] bool has_responses_due() const;
  void publish_completions(Instant now);
  // ibv_modify_cq: armed queues are announced after so many completions, or after this time.
  void moderate(Instant now, CompletionQueue& cq, std::uint16_t count, Duration period);
  // It was just armed.
  void announce_missed(CompletionQueue& cq) {
    if (cq.announce_missed()) state_.notify.push_back(cq);
  }
  // A moderated announcement is due then: publish again.
  [[nodiscard]] Instant next_announcement() const { return state_.next_announcement; }
  // There is something for poll_notification or poll_event.
  [[nodiscard]] bool has_news() const {
    return !state_.notify.empty() || !state_.qp_events.empty() || !state_.cq_events.empty() ||
           !state_.srq_events.empty();
  }
  // Queues whose armed notification is due, one at a time; null when there are no more.
  [[nodiscard]] CompletionQueue* poll_notification();
  [[nodiscard]] bool poll_event(Event& event);
  // Before an object is freed: its events and notifications that nobody took are gone.
  void forget(CompletionQueue& cq);
  void forget(Srq& srq);
  // Raises kSrqLimitReached if fewer than srq.limit are left.
  void check_srq_limit(Srq& srq);

 private:
  HcaState state_;
  wire::PacketView view_;  // room for the packet in hand: clearing it costs more than parsing
};

}  // namespace uroce::transport
