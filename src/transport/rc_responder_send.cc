// SPDX-License-Identifier: BSD-2-Clause
// Responder generates responses (IBTA 9.7.5): READ and atomic answers in the order of their
// requests, then one acknowledgement for everything before the expected PSN, or one NAK for what is
// expected. Acknowledgements coalesce by waiting here until poll_transmit comes by.
#include <algorithm>

#include "transport/complete.h"
#include "transport/rc.h"
#include "transport/segment.h"
#include "wire/build.h"

namespace uroce::transport {
namespace {

using wire::Syndrome;

bool has_replay_due(const RcResponder& responder) {
  return responder.due_head != responder.due_tail;
}

bool has_response_due(const RcResponder& responder) {
  return has_replay_due(responder) || responder.nak_due || responder.ack_due ||
         responder.hints.count != 0;
}

void settle(HcaState& hca, RcResponder& responder) {
  if (!responder.is_counted || has_response_due(responder)) return;
  responder.is_counted = false;
  --hca.responses_due;
}

wire::Bth response_header(const Qp& qp, wire::Opcode opcode, Psn psn) {
  return {
      .opcode = opcode, .pkey = qp.pkey, .destination = qp.attributes.destination_qpn, .psn = psn};
}

Syndrome nak_syndrome(const Qp& qp, Fault fault) {
  if (fault == Fault::kNotReady) return Syndrome::rnr_nak(qp.attributes.min_rnr_timer);
  return Syndrome::nak(kFaults[static_cast<std::size_t>(fault)].nak);
}

void send_acknowledge(HcaState& hca, Qp& qp, TxBurst& burst) {
  RcResponder& responder = qp.responder;
  const bool is_nak = responder.nak_due;
  const bool is_rnr = is_nak && responder.nak_fault == Fault::kNotReady;
  ++(is_rnr   ? hca.counters.rnr_naks_sent
     : is_nak ? hca.counters.naks_sent
              : hca.counters.acks_sent);
  const Psn psn = is_nak ? responder.expected_psn : responder.expected_psn - 1;
  const Syndrome syndrome = is_nak ? nak_syndrome(qp, responder.nak_fault) : Syndrome::ack();
  TxFrame& frame = burst.next();
  build(frame, response_header(qp, wire::Opcode::kRcAcknowledge, psn),
        wire::Aeth{syndrome, {responder.msn}});
  address_frame(frame, qp, {is_nak ? FrameTag::Kind::kNak : FrameTag::Kind::kAck, psn, 0});
  burst.commit(0);
  // A NAK acknowledges what is before it.
  responder.ack_due = responder.nak_due = false;
}

void send_hint(HcaState& hca, Qp& qp, Psn missing, TxBurst& burst) {
  RcResponder& responder = qp.responder;
  ++hca.counters.hints_sent;
  const Psn psn = GapHint::psn(responder.expected_psn, missing);
  TxFrame& frame = burst.next();
  build(frame, response_header(qp, wire::Opcode::kRcAcknowledge, psn),
        wire::Aeth{Syndrome::ack(), {responder.msn}});
  address_frame(frame, qp, {FrameTag::Kind::kHint, psn, 0});
  burst.commit(0);
}

// The next gap that was not filled meanwhile; false: there is none.
[[gnu::cold]] bool send_hints(HcaState& hca, Qp& qp, TxBurst& burst) {
  GapHints& hints = qp.responder.hints;
  while (hints.count != 0) {
    const Psn missing = hints.missing[--hints.count];
    if (!is_before(qp.responder.expected_psn, missing)) continue;
    send_hint(hca, qp, missing, burst);
    return true;
  }
  settle(hca, qp.responder);
  return false;
}

void finish_replay(RcResponder& responder) {
  responder.replay[responder.due[responder.due_head % kReplayMax]].is_due = false;
  ++responder.due_head;
}

void send_atomic_acknowledge(Qp& qp, const ReplayEntry& entry, std::uint32_t index,
                             TxBurst& burst) {
  TxFrame& frame = burst.next();
  build(frame, response_header(qp, wire::Opcode::kRcAtomicAcknowledge, entry.first_psn),
        wire::Aeth{Syndrome::ack(), {entry.msn}}, wire::AtomicAckEth{entry.value});
  address_frame(frame, qp, {FrameTag::Kind::kResponse, entry.first_psn, index});
  burst.commit(0);
  finish_replay(qp.responder);
}

std::uint32_t packets_to_answer(const HcaState& hca, const Qp& qp, const ReplayEntry& entry) {
  const LinkFacts& facts = hca.links[qp.link].facts;
  const auto left = static_cast<std::uint32_t>(distance(entry.send_psn, entry.due_last)) + 1;
  return std::min<std::uint32_t>(
      {left, facts.max_run_packets, packets_within(facts.max_run_bytes, qp.path_mtu)});
}

memory::Resolved source_of(const HcaState& hca, const Qp& qp, const ReplayEntry& entry,
                           std::uint64_t offset, std::uint64_t bytes) {
  using memory::Access;
  return entry.granted == LKey{} ? hca.regions.resolve(entry.rkey, entry.address + offset, bytes,
                                                       Access::kRemoteRead, accessor(qp))
                                 : hca.regions.resolve(entry.granted, entry.value + offset, bytes,
                                                       Access::kNone, qp.pd);
}

// False: the memory is not the peer's to read any more.
bool send_read_response(HcaState& hca, Qp& qp, ReplayEntry& entry, std::uint32_t index,
                        TxBurst& burst) {
  const std::uint32_t packets = packets_to_answer(hca, qp, entry);
  const std::uint64_t offset = offset_of(entry.first_psn, entry.send_psn, qp.path_mtu);
  const auto bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(entry.length - offset, std::uint64_t{packets} * qp.path_mtu));
  const memory::Resolved source = source_of(hca, qp, entry, offset, bytes);
  if (source.fault != memory::MemoryFault::kNone) return false;

  TxFrame& frame = burst.next();
  frame.payload_bytes = bytes;
  frame.packet_count = static_cast<std::uint16_t>(packets);
  const bool begins = entry.send_psn == entry.due_from;
  const bool ends = entry.send_psn + (packets - 1) == entry.due_last;
  const wire::Bth bth =
      response_header(qp,
                      wire::pick_opcode(wire::Service::kRc, wire::Kind::kReadResponse,
                                        wire::make_place(begins, ends)),
                      entry.send_psn);
  if (begins || ends) {
    build(frame, bth, wire::Aeth{Syndrome::ack(), {entry.msn}});
  } else {
    build(frame, bth);
  }
  address_frame(frame, qp, {FrameTag::Kind::kResponse, entry.send_psn, index});
  if (bytes != 0) burst.free_pieces()[0] = {source.base, bytes};
  burst.commit(bytes == 0 ? 0 : 1);
  entry.send_psn += packets;
  if (ends) finish_replay(qp.responder);
  return true;
}

// The answer to the oldest request that waits for one; false: it cannot be given.
bool send_replay(HcaState& hca, Qp& qp, TxBurst& burst) {
  RcResponder& responder = qp.responder;
  const std::uint32_t index = responder.due[responder.due_head % kReplayMax];
  ReplayEntry& entry = responder.replay[index];
  if (entry.kind == wire::Kind::kReadRequest) {
    return send_read_response(hca, qp, entry, index, burst);
  }
  send_atomic_acknowledge(qp, entry, index, burst);
  return true;
}

}  // namespace

bool next_response(HcaState& hca, Qp& qp, TxBurst& burst) {
  RcResponder& responder = qp.responder;
  if (has_replay_due(responder)) {
    if (!send_replay(hca, qp, burst)) {
      // The NAK is for the packet that cannot be sent; nothing behind it will be answered.
      const ReplayEntry& entry = responder.replay[responder.due[responder.due_head % kReplayMax]];
      responder.expected_psn = entry.send_psn;
      forget_responses(hca, qp);
      raise(hca, qp, Fault::kRemoteKey);
    }
  } else if (responder.nak_due || responder.ack_due) {
    send_acknowledge(hca, qp, burst);
  } else if (responder.hints.count == 0 || !send_hints(hca, qp, burst)) {
    return false;
  }
  settle(hca, responder);
  return true;
}

void unsend_response(HcaState& hca, Qp& qp, FrameTag tag) {
  RcResponder& responder = qp.responder;
  if (tag.kind == FrameTag::Kind::kAck) {
    responder.ack_due = true;
  } else if (tag.kind == FrameTag::Kind::kNak) {
    responder.nak_due = true;
  } else if (tag.kind == FrameTag::Kind::kHint) {
    return;  // the peer finds out by itself
  } else {
    ReplayEntry& entry = responder.replay[tag.index];
    entry.send_psn = tag.psn;
    if (!entry.is_due) {  // it was finished: in front again
      entry.is_due = true;
      responder.due[--responder.due_head % kReplayMax] = static_cast<std::uint8_t>(tag.index);
    }
  }
  owe_response(hca, qp);
}

void owe_response(HcaState& hca, Qp& qp) {
  if (!qp.responder.is_counted) {
    qp.responder.is_counted = true;
    ++hca.responses_due;
  }
  make_ready(hca, qp);
}

void owe_replay(HcaState& hca, Qp& qp, std::uint32_t entry) {
  RcResponder& responder = qp.responder;
  if (!responder.replay[entry].is_due) {
    responder.replay[entry].is_due = true;
    // A repeated one goes before those behind it, even if they are being answered: what comes
    // before its answer is of no use to the peer.
    std::uint32_t place = responder.due_tail++;
    for (; place != responder.due_head; --place) {
      const std::uint8_t previous = responder.due[(place - 1) % kReplayMax];
      if (!is_before(responder.replay[entry].first_psn, responder.replay[previous].first_psn))
        break;
      responder.due[place % kReplayMax] = previous;
    }
    responder.due[place % kReplayMax] = static_cast<std::uint8_t>(entry);
  }
  owe_response(hca, qp);
}

bool cancel_repeat(RcResponder& responder, std::uint32_t entry) {
  if (!responder.replay[entry].is_repeat) return false;
  std::uint32_t kept = responder.due_head;
  for (std::uint32_t i = responder.due_head; i != responder.due_tail; ++i) {
    const std::uint8_t index = responder.due[i % kReplayMax];
    if (index != entry) responder.due[kept++ % kReplayMax] = index;
  }
  responder.due_tail = kept;
  responder.replay[entry].is_due = false;
  return true;
}

void forget_responses(HcaState& hca, Qp& qp) {
  RcResponder& responder = qp.responder;
  for (ReplayEntry& entry : responder.replay) entry.is_due = entry.is_used = false;
  responder.due_head = responder.due_tail = 0;
  responder.ack_due = responder.nak_due = false;
  responder.hints.count = 0;
  settle(hca, responder);
}

}  // namespace uroce::transport
