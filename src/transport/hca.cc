// SPDX-License-Identifier: BSD-2-Clause
#include "transport/hca.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "transport/complete.h"
#include "transport/qp_lifecycle.h"
#include "transport/qp_state.h"
#include "transport/raw_packet.h"
#include "transport/rc.h"
#include "transport/recovery.h"
#include "transport/retry.h"
#include "transport/unreliable.h"
#include "transport/window.h"
#include "transport/xrc_target.h"
#include "wire/parse.h"

namespace uroce::transport {
namespace {

// Frames a QP may send before the next one has its turn.
inline constexpr int kFramesPerTurn = 8;

// IBTA 10.9.3: the same partition, and not limited members both.
bool pkeys_match(PKey a, PKey b) {
  constexpr std::uint16_t kFullMember = 0x8000;
  return ((a.value ^ b.value) & ~kFullMember & 0xffff) == 0 &&
         ((a.value | b.value) & kFullMember) != 0;
}

// Of a connected QP. Null where the link itself vouches for the peer.
bool comes_from_peer(const Qp& qp, LinkId link, const RxPacket& packet) {
  if (qp.link != link) return false;
  const Path& path = qp.attributes.path;
  return (packet.source == nullptr || *packet.source == path.destination) &&
         (packet.destination == nullptr || *packet.destination == path.source);
}

// What is placed before a datagram must be known; a group's address goes with a group's number.
bool is_addressed(const wire::PacketView& view) {
  const RxPacket& packet = *view.packet;
  return packet.source != nullptr && packet.destination != nullptr &&
         (!packet.destination->is_multicast() || view.bth.destination == kMulticastQpn);
}

bool takes_requests(QpState state) {
  return state == QpState::kRtr || state == QpState::kRts || state == QpState::kSqd ||
         state == QpState::kSqe;
}

// The two ends of XRC have one half each.
bool has_half_for(const Qp& qp, const wire::OpcodeInfo& opcode) {
  return opcode.service == qp.wire_service &&
         qp.service != (opcode.is_request ? Service::kXrcInitiator : Service::kXrcTarget);
}

// Counts why not. Inline in every packet's way, although groups ask too.
[[gnu::always_inline]] inline bool is_for(HcaState& hca, const Qp& qp, LinkId link,
                                          const wire::PacketView& view) {
  if (!has_half_for(qp, *view.opcode)) {
    ++hca.counters.rx_wrong_service;
  } else if (!takes_requests(qp.state.load(std::memory_order_relaxed))) {
    ++hca.counters.rx_wrong_state;
  } else if (!pkeys_match(view.bth.pkey, qp.pkey)) {
    ++hca.counters.rx_bad_pkey;
  } else if (!(qp.service == Service::kUd ? is_addressed(view)
                                          : comes_from_peer(qp, link, *view.packet))) {
    ++hca.counters.rx_wrong_address;
  } else {
    return true;
  }
  return false;
}

// IBTA 11.6.3.1: of a connection, which datagrams have not.
inline void note_communication(HcaState& hca, Qp& qp) {
  if (qp.communication_established || qp.service == Service::kUd) return;
  if (qp.state.load(std::memory_order_relaxed) != QpState::kRtr) return;
  qp.communication_established = true;
  raise_event(hca, qp, EventType::kCommunicationEstablished);
}

void dispatch(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view) {
  if (!view.opcode->is_request) {
    on_response(hca, now, qp, view);
    return;
  }
  note_communication(hca, qp);
  qp.responder.last_request_at = now;
  if (is_reliable(qp.service)) {
    on_request(hca, qp, view);
  } else if (qp.service == Service::kUc) {
    on_uc_request(hca, qp, view);
  } else {
    on_datagram(hca, qp, view);
  }
}

// A QPN is one of this host's only together with an address of it.
bool is_sender(const HcaState& hca, const Qp& qp, const wire::PacketView& view) {
  return view.opcode->deth && view.deth.source == qp.number && hca.oracle != nullptr &&
         hca.oracle->is_own_address(*view.packet->source);
}

// To each of a group but who sent it, or to nobody.
[[gnu::cold]] void on_packet_for_no_qp(HcaState& hca, LinkId link, const wire::PacketView& view) {
  const Gid* const to = view.packet->destination;
  const bool is_for_group =
      view.bth.destination == kMulticastQpn && to != nullptr && to->is_multicast();
  if (!is_for_group || !hca.multicast.has_members(*to)) {
    ++hca.counters.rx_unknown_qpn;
    return;
  }
  hca.multicast.for_each(*to, [&](Qp& qp) {
    if (is_for(hca, qp, link, view) && !is_sender(hca, qp, view)) on_datagram(hca, qp, view);
  });
}

// `view` is room for what is parsed.
void on_packet(HcaState& hca, Instant now, LinkId link, const RxPacket& packet,
               wire::PacketView& view) {
  if (auto reason = wire::parse(packet, view); reason != wire::DropReason::kNone) {
    const bool is_packet = !packet.bytes.empty() || !packet.has_frame();
    if (is_packet) ++hca.counters.rx_malformed[static_cast<std::size_t>(reason)];
    return;
  }
  Qp* qp = hca.demux.find(view.bth.destination);
  if (qp == nullptr) return on_packet_for_no_qp(hca, link, view);
  if (is_for(hca, *qp, link, view)) dispatch(hca, now, *qp, view);
}

// While there are flows, links lend whole frames too, with and without a packet for us.
[[gnu::cold]] void steer_frames(HcaState& hca, std::span<const RxPacket> packets) {
  for (const RxPacket& packet : packets) {
    if (packet.has_frame()) on_raw_packet(hca, packet.frame(), !packet.bytes.empty());
  }
}

bool next_frame(HcaState& hca, Instant now, Qp& qp, TxBurst& burst) {
  if (is_reliable(qp.service)) {
    if (qp.responder.owes_response && next_response(hca, qp, burst)) return true;
    return has_request(qp) && next_request(hca, now, qp, burst);
  }
  if (qp.service == Service::kUc) return next_uc_request(hca, qp, burst);
  return qp.service == Service::kUd ? next_datagram(hca, qp, burst)
                                    : next_raw_packet(hca, qp, burst);
}

// What the QP has to send, up to its share; true: it may have more.
bool serve(HcaState& hca, Instant now, Qp& qp, TxBurst& burst) {
  for (int i = 0; i < kFramesPerTurn; ++i) {
    if (burst.is_full()) return true;
    if (!next_frame(hca, now, qp, burst)) return false;
  }
  return true;
}

void unsend(HcaState& hca, TxFrame& frame) {
  ++hca.counters.frames_refused;
  Qp& qp = *static_cast<Qp*>(frame.owner);
  const FrameTag tag = FrameTag::of(frame.cookie);
  if (!is_reliable(qp.service)) {
    unsend_unreliable(qp, tag);
  } else if (tag.kind == FrameTag::Kind::kRequest) {
    unsend_request(hca, qp, tag);
  } else if (tag.kind == FrameTag::Kind::kResend) {
    unsend_missing(hca, qp, tag.psn);
  } else {
    unsend_response(hca, qp, tag);
  }
  qp.ready_hook.unlink();
  hca.links[qp.link].refused.push_back(qp);
}

template <typename T, ListHook T::*kHook>
T* take_event(List<T, kHook>& list, EventType& type) {
  T* object = list.front();
  if (object == nullptr) return nullptr;
  const int bit = std::countr_zero(object->pending_events);
  object->pending_events &= object->pending_events - 1;
  if (object->pending_events == 0) list.pop_front();
  type = static_cast<EventType>(bit);
  return object;
}

// Those that are due, and no more than those: whoever else waits stays in the list.
[[gnu::cold]] void announce_delayed(HcaState& hca, Instant now) {
  hca.next_announcement = Instant::never();
  for (CompletionQueue *cq = hca.delayed.front(), *next = nullptr; cq != nullptr; cq = next) {
    next = hca.delayed.next(*cq);
    const Instant due = cq->announcement_due();
    if (due != Instant::never() && due > now) {
      hca.next_announcement = std::min(hca.next_announcement, due);
      continue;
    }
    cq->delay_hook.unlink();
    if (cq->announce()) hca.notify.push_back(*cq);
  }
}

}  // namespace

void Hca::create_qp(Qp& qp, const QpInit& init) {
  qp.number = init.number;
  qp.pd = init.pd;
  qp.service = init.service;
  qp.wire_service = wire_service(init.service);
  if (qp.service == Service::kUd) qp.path_mtu = init.datagram_bytes;
  if (qp.service == Service::kRawPacket) qp.link = kUplink;
  qp.signal_all = init.signal_all;
  qp.send_cq = init.send_cq;
  qp.receive_cq = init.receive_cq;
  qp.srq = init.srq;
  qp.xrcd = init.xrcd;
  qp.srq_copy = init.srq_copy;
  qp.send_queue.set_memory(init.send_memory, init.send_capacity, init.send_stride);
  qp.receive_queue.set_memory(init.receive_memory, init.receive_capacity, init.receive_stride);
  qp.responder.replay = init.replay;
  qp.spread = init.spread;
  qp.user = init.user;
  // Packets of RoCE name no other; frames come by flows.
  if (qp.service != Service::kRawPacket) state_.demux.insert(qp.number, qp);
}

void Hca::destroy_qp(Qp& qp) {
  reset(state_, qp);
  state_.demux.erase(qp.number);
}

int Hca::modify_qp(Instant now, Qp& qp, const QpAttributes& attributes, std::uint32_t mask,
                   Peer* peer) {
  const QpState from = qp.state.load(std::memory_order_relaxed);
  if (int error = check_modify(qp.service, from, attributes, mask); error != 0) return error;
  const bool has_state = (mask & qp_attribute::kState) != 0;
  const QpState to = has_state ? attributes.state : from;
  if (from == QpState::kSqd && !may_leave_sqd(qp, to)) return EINVAL;
  apply_attributes(state_, qp, attributes, mask, peer);
  if (has_state || from == QpState::kSqd) {
    enter_state(state_, now, qp, to, mask);
  }
  return 0;
}

QpAttributes Hca::query_qp(const Qp& qp) const {
  QpAttributes attributes = qp.attributes;
  attributes.state = attributes.current_state = qp.state.load(std::memory_order_relaxed);
  attributes.receive_psn = qp.responder.expected_psn;
  attributes.send_psn = qp.requester.next_psn;
  return attributes;
}

bool Hca::is_drained(const Qp& qp) const { return is_send_drained(qp); }

bool Hca::may_be_asked_again(Instant now, const Qp& qp, Duration silence) const {
  if (!takes_requests(qp.state.load(std::memory_order_relaxed))) return false;
  if (qp.responder.owes_response) return true;
  return now - qp.responder.last_request_at < silence &&
         !state_.links[qp.link].facts.trusted_memory &&
         (qp.responder.has_seen_losses || qp.requester.flight.has_seen_losses);
}

void Hca::on_packets(Instant now, LinkId link, std::span<const RxPacket> packets) {
  if (!state_.flows.is_empty()) [[unlikely]]
    steer_frames(state_, packets);
  for (const RxPacket& packet : packets) on_packet(state_, now, link, packet, view_);
}

void Hca::on_timer(Instant now) {
  if (state_.deadlines.next() <= now) {
    while (Qp* qp = state_.deadlines.pop_due(now)) on_deadline(state_, now, *qp);
  }
  if (state_.early_deadlines.next() <= now) {
    while (Qp* qp = state_.early_deadlines.pop_due(now)) on_early_deadline(state_, now, *qp);
  }
}

void Hca::on_doorbell(Instant, Qp& qp) { on_posted(state_, qp); }

void Hca::on_refused(Instant, std::span<TxFrame> frames) {
  // Backwards, so that each QP ends at the first of its frames that was refused.
  for (std::size_t i = frames.size(); i-- != 0;) {
    if (frames[i].refused) unsend(state_, frames[i]);
  }
}

void Hca::retry_refused(LinkId link) {
  state_.links[link].ready.append(state_.links[link].refused);
}

bool Hca::poll_transmit(Instant now, LinkId link, TxBurst& burst) {
  if (!state_.unsettled.empty()) settle(state_);
  auto& ready = state_.links[link].ready;
  while (!burst.is_full()) {
    Qp* qp = ready.pop_front();
    if (qp == nullptr) break;
    if (serve(state_, now, *qp, burst)) ready.push_back(*qp);
  }
  return !burst.empty();
}

bool Hca::has_frames_due() const {
  return std::ranges::any_of(state_.links, [](const auto& link) { return !link.ready.empty(); });
}

bool Hca::is_quiet() const {
  for (const LinkState& link : state_.links) {
    if (!link.ready.empty() || !link.refused.empty()) return false;
  }
  return state_.unsettled.empty() && state_.dirty.empty() && state_.notify.empty() &&
         state_.qp_events.empty() && state_.cq_events.empty() && state_.srq_events.empty();
}

bool Hca::is_unused() const {
  for (const LinkState& link : state_.links) {
    if (!link.waiting.empty() || link.reads_in_flight != 0) return false;
  }
  return is_quiet() && !has_responses_due() && next_deadline() == Instant::never() &&
         next_early_deadline() == Instant::never() && state_.stash.is_empty();
}

bool Hca::has_responses_due() const { return state_.responses_due != 0; }

void Hca::publish_completions(Instant now) {
  if (!state_.unsettled.empty()) settle(state_);
  while (CompletionQueue* cq = state_.dirty.pop_front()) {
    if (cq->publish(now)) {
      state_.notify.push_back(*cq);
    } else if (cq->announcement_due() != Instant::never()) [[unlikely]] {
      state_.delayed.push_back(*cq);
      state_.next_announcement = std::min(state_.next_announcement, cq->announcement_due());
    }
  }
  if (state_.next_announcement <= now) [[unlikely]]
    announce_delayed(state_, now);
}

void Hca::moderate(Instant now, CompletionQueue& cq, std::uint16_t count, Duration period) {
  cq.moderate(count, period);
  // What waits by the former rule does not wait by this one.
  if (cq.announce()) state_.notify.push_back(cq);
  announce_delayed(state_, now);
}

CompletionQueue* Hca::poll_notification() { return state_.notify.pop_front(); }

bool Hca::poll_event(Event& event) {
  event = Event{};
  event.qp = take_event(state_.qp_events, event.type);
  if (event.qp == nullptr) event.cq = take_event(state_.cq_events, event.type);
  if (event.qp == nullptr && event.cq == nullptr) {
    event.srq = take_event(state_.srq_events, event.type);
  }
  return event.qp != nullptr || event.cq != nullptr || event.srq != nullptr;
}

void Hca::forget(CompletionQueue& cq) {
  cq.dirty_hook.unlink();
  cq.notify_hook.unlink();
  cq.delay_hook.unlink();
  cq.event_hook.unlink();
}

void Hca::insert_srq(Srq& srq) { state_.demux.insert(srq.number, srq); }

void Hca::forget(Srq& srq) {
  srq.event_hook.unlink();
  if (srq.cq == nullptr) return;
  release_targets(srq);
  state_.demux.erase(srq.number);
}

void Hca::check_srq_limit(Srq& srq) { transport::check_srq_limit(state_, srq); }

}  // namespace uroce::transport
