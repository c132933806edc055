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
         responder.hints.count != 0 || responder.parts.count != 0;
}

void settle(HcaState& hca, RcResponder& responder) {
  if (!responder.owes_response || has_response_due(responder)) return;
  responder.owes_response = false;
  --hca.responses_due;
}

wire::Bth response_header(const Qp& qp, wire::Opcode opcode, Psn psn) {
  return {.opcode = wire::in_service(opcode, qp.wire_service),
          .pkey = qp.pkey,
          .destination = qp.attributes.destination_qpn,
          .psn = psn};
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
  responder.hints.gap_was_told |= is_nak;
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

// Of a FLUSH or an atomic write, as Linux's rxe answers them: a READ's answer of no bytes.
void send_empty_response(Qp& qp, const ReplayEntry& entry, std::uint32_t index, TxBurst& burst) {
  TxFrame& frame = burst.next();
  build(frame, response_header(qp, wire::Opcode::kRcReadResponseOnly, entry.first_psn),
        wire::Aeth{Syndrome::ack(), {entry.msn}});
  address_frame(frame, qp, {FrameTag::Kind::kResponse, entry.first_psn, index});
  burst.commit(0);
  finish_replay(qp.responder);
}

std::uint32_t packets_to_answer(const HcaState& hca, const Qp& qp, const ReadAnswer& answer) {
  const LinkFacts& facts = hca.links[qp.link].facts;
  const auto left = static_cast<std::uint32_t>(distance(answer.next, answer.last)) + 1;
  return std::min<std::uint32_t>(
      {left, facts.max_run_packets, packets_within(facts.max_run_bytes, qp.path_mtu)});
}

memory::Resolved source_of(const HcaState& hca, const Qp& qp, const ReplayEntry& entry,
                           std::uint64_t offset, std::uint64_t bytes) {
  using memory::Access;
  return entry.granted == LKey{} ? hca.regions.resolve(entry.rkey, entry.address + offset, bytes,
                                                       Access::kRemoteRead, {entry.pd, qp.number})
                                 : hca.regions.resolve(entry.granted, entry.value + offset, bytes,
                                                       Access::kNone, entry.pd);
}

// Of `answer`, which is one to `entry`. False: the memory is not the peer's to read any more.
bool send_read_response(HcaState& hca, Qp& qp, const ReplayEntry& entry, ReadAnswer& answer,
                        FrameTag tag, TxBurst& burst) {
  const std::uint32_t packets = packets_to_answer(hca, qp, answer);
  const std::uint64_t offset = offset_of(entry.first_psn, answer.next, qp.path_mtu);
  const auto bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(entry.length - offset, std::uint64_t{packets} * qp.path_mtu));
  const memory::Resolved source = source_of(hca, qp, entry, offset, bytes);
  if (source.fault != memory::MemoryFault::kNone) return false;

  TxFrame& frame = burst.next();
  frame.payload_bytes = bytes;
  frame.packet_count = static_cast<std::uint16_t>(packets);
  const bool begins = answer.next == answer.first;
  const bool ends = answer.next + (packets - 1) == answer.last;
  const wire::Bth bth =
      response_header(qp,
                      wire::pick_opcode(wire::Service::kRc, wire::Kind::kReadResponse,
                                        wire::make_place(begins, ends)),
                      answer.next);
  if (begins || ends) {
    build(frame, bth, wire::Aeth{Syndrome::ack(), {entry.msn}});
  } else {
    build(frame, bth);
  }
  address_frame(frame, qp, tag);
  if (bytes != 0) burst.free_pieces()[0] = {source.base, bytes};
  burst.commit(bytes == 0 ? 0 : 1);
  answer.next += packets;
  return true;
}

bool is_given(const ReadAnswer& answer) { return answer.next == answer.last + 1; }

bool send_read(HcaState& hca, Qp& qp, ReplayEntry& entry, std::uint32_t index, TxBurst& burst) {
  const FrameTag tag{FrameTag::Kind::kResponse, entry.answer.next, index};
  if (!send_read_response(hca, qp, entry, entry.answer, tag, burst)) return false;
  if (is_given(entry.answer)) finish_replay(qp.responder);
  return true;
}

[[gnu::cold]] bool send_part(HcaState& hca, Qp& qp, TxBurst& burst) {
  ReadParts& parts = qp.responder.parts;
  ReadParts::Part& part = parts.parts.front();
  const auto left = static_cast<std::uint32_t>(distance(part.answer.next, part.answer.last));
  const FrameTag tag{FrameTag::Kind::kPart, part.answer.next, left << 8 | part.entry};
  const ReplayEntry& entry = qp.responder.replay[part.entry];
  if (!send_read_response(hca, qp, entry, part.answer, tag, burst)) return false;
  if (is_given(part.answer)) parts.remove(0);
  return true;
}

// What was refused of a part goes first again; as a part that begins there.
[[gnu::cold]] void unsend_part(ReadParts& parts, FrameTag tag) {
  const auto entry = static_cast<std::uint8_t>(tag.index);
  const Psn last = tag.psn + (tag.index >> 8);
  const ReadParts::Part part{entry, {tag.psn, tag.psn, last}};
  const ReadParts::Part& first = parts.parts.front();
  if (parts.count != 0 && first.entry == entry && first.answer.last == last) {
    parts.parts.front() = part;
  } else if (parts.count != ReadParts::kMax) {
    parts.add(0, part);
  }
}

// The answer to the oldest request that waits for one, or to a part of it; false: it cannot be
// given.
bool send_replay(HcaState& hca, Qp& qp, TxBurst& burst) {
  RcResponder& responder = qp.responder;
  const std::uint32_t index = responder.due[responder.due_head % kReplayMax];
  ReplayEntry& entry = responder.replay[index];
  switch (entry.kind) {
    case wire::Kind::kReadRequest:
      return send_read(hca, qp, entry, index, burst);
    case wire::Kind::kFlush:
    case wire::Kind::kAtomicWrite:
      send_empty_response(qp, entry, index, burst);
      return true;
    case wire::Kind::kCompareSwap:
    case wire::Kind::kFetchAdd:
      send_atomic_acknowledge(qp, entry, index, burst);
      return true;
    case wire::Kind::kReserved:
    case wire::Kind::kSend:
    case wire::Kind::kWrite:
    case wire::Kind::kReadResponse:
    case wire::Kind::kAcknowledge:
    case wire::Kind::kAtomicAcknowledge:
      break;  // not kept
  }
  return false;
}

// The NAK is for the packet that cannot be sent; nothing behind it will be answered.
[[gnu::cold]] void refuse_read(HcaState& hca, Qp& qp, Psn psn) {
  qp.responder.expected_psn = psn;
  forget_responses(hca, qp);
  raise(hca, qp, Fault::kRemoteKey);
}

}  // namespace

bool next_response(HcaState& hca, Qp& qp, TxBurst& burst) {
  RcResponder& responder = qp.responder;
  if (responder.parts.count != 0) [[unlikely]] {
    if (!send_part(hca, qp, burst)) refuse_read(hca, qp, responder.parts.parts.front().answer.next);
  } else if (has_replay_due(responder)) {
    if (!send_replay(hca, qp, burst)) {
      const std::uint32_t index = responder.due[responder.due_head % kReplayMax];
      refuse_read(hca, qp, responder.replay[index].answer.next);
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
    responder.hints.gap_was_told = false;
    responder.nak_due = true;
  } else if (tag.kind == FrameTag::Kind::kHint) {
    return;  // the peer finds out by itself
  } else if (tag.kind == FrameTag::Kind::kPart) {
    unsend_part(responder.parts, tag);
  } else {
    ReplayEntry& entry = responder.replay[tag.index];
    entry.answer.next = tag.psn;
    if (!entry.is_due) {  // it was finished: in front again
      entry.is_due = true;
      responder.due[--responder.due_head % kReplayMax] = static_cast<std::uint8_t>(tag.index);
    }
  }
  owe_response(hca, qp);
}

void owe_response(HcaState& hca, Qp& qp) {
  if (!qp.responder.owes_response) {
    qp.responder.owes_response = true;
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

void owe_part(HcaState& hca, Qp& qp, std::uint32_t entry, const ReadAnswer& answer) {
  ReadParts& parts = qp.responder.parts;
  const auto is_same = [&](const ReadParts::Part& part) {
    return part.entry == entry && part.answer.last == answer.last &&
           is_at_or_before(part.answer.next, answer.next);
  };
  const auto waiting = std::span(parts.parts).first(parts.count);
  if (parts.count == ReadParts::kMax || std::ranges::any_of(waiting, is_same)) return;
  parts.add(parts.count, {static_cast<std::uint8_t>(entry), answer});
  owe_response(hca, qp);
}

void drop_parts(RcResponder& responder, std::uint32_t entry, Psn from) {
  for (std::size_t i = responder.parts.count; i-- != 0;) {
    const ReadParts::Part& part = responder.parts.parts[i];
    if (part.entry == entry && is_at_or_before(from, part.answer.next)) responder.parts.remove(i);
  }
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
  responder.hints.count = responder.parts.count = 0;
  settle(hca, responder);
}

}  // namespace uroce::transport
