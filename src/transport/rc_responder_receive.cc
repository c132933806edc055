// SPDX-License-Identifier: BSD-2-Clause
// Responder receives requests (IBTA 9.7.4.1 and the checks of 9.6): sequence, order, rights,
// length, then the effect. A request takes effect once; a repeated one is answered again from what
// was kept (C9-105 and following); one that is early is answered by one NAK a gap.
#include "memory/dma.h"
#include "transport/complete.h"
#include "transport/execute.h"
#include "transport/rc.h"
#include "transport/segment.h"
#include "transport/stash.h"
#include "transport/xrc_target.h"

namespace uroce::transport {
namespace {

using memory::Access;
using wire::Kind;
using wire::PacketView;

// Room to keep a READ or atomic for replay; null when the peer has more of them unanswered than
// max_dest_rd_atomic allows.
ReplayEntry* keep(Qp& qp, const PacketView& view, std::uint32_t packets) {
  RcResponder& responder = qp.responder;
  if (responder.replay_limit == 0) return nullptr;
  ReplayEntry& entry = responder.replay[responder.replay_next];
  if (entry.is_due && !cancel_repeat(responder, responder.replay_next)) return nullptr;
  if (responder.parts.count != 0) [[unlikely]]
    drop_parts(responder, responder.replay_next, entry.first_psn);
  entry.is_repeat = false;
  entry.granted = {};
  entry.pd = qp.pd;
  entry.kind = view.opcode->kind;
  entry.is_used = true;
  entry.first_psn = view.bth.psn;
  entry.last_psn = view.bth.psn + (packets - 1);
  entry.msn = (responder.msn + 1) & 0xff'ffff;
  entry.answer = {entry.first_psn, entry.first_psn, entry.last_psn};
  return &entry;
}

void owe_kept(HcaState& hca, Qp& qp) {
  RcResponder& responder = qp.responder;
  owe_replay(hca, qp, responder.replay_next);
  responder.replay_next = (responder.replay_next + 1) % responder.replay_limit;
  responder.ack_due = false;  // the answer acknowledges everything before it
}

Fault execute_read(HcaState& hca, Qp& qp, const PacketView& view) {
  const wire::Reth& reth = view.reth;
  if (reth.dma_bytes > kMessageBytesMax) return Fault::kInvalidRequest;
  if (hca.regions
          .resolve(reth.rkey, reth.virtual_address, reth.dma_bytes, Access::kRemoteRead,
                   accessor(qp), 0)
          .fault != memory::MemoryFault::kNone) {
    return Fault::kRemoteKey;
  }
  const std::uint32_t packets = packets_in(reth.dma_bytes, qp.path_mtu);
  ReplayEntry* entry = keep(qp, view, packets);
  if (entry == nullptr) return Fault::kInvalidRequest;
  entry->address = reth.virtual_address;
  entry->rkey = reth.rkey;
  entry->length = reth.dma_bytes;
  advance(qp.responder, view, packets);
  owe_kept(hca, qp);
  return Fault::kNone;
}

Fault execute_atomic(HcaState& hca, Qp& qp, const PacketView& view) {
  const wire::AtomicEth& eth = view.atomic_eth;
  if (eth.virtual_address % sizeof(std::uint64_t) != 0) return Fault::kInvalidRequest;  // 9.4.5
  const auto target = hca.regions.resolve(eth.rkey, eth.virtual_address, sizeof(std::uint64_t),
                                          Access::kRemoteAtomic, accessor(qp));
  if (target.fault != memory::MemoryFault::kNone) return Fault::kRemoteKey;
  ReplayEntry* entry = keep(qp, view, 1);
  if (entry == nullptr) return Fault::kInvalidRequest;
  const auto original = view.opcode->kind == Kind::kCompareSwap
                            ? memory::compare_and_swap(target.base, eth.compare, eth.swap_or_add)
                            : memory::fetch_and_add(target.base, eth.swap_or_add);
  if (!original) {
    entry->is_used = false;  // an aligned address of an unaligned region
    return Fault::kInvalidRequest;
  }
  entry->value = *original;
  advance(qp.responder, view, 1);
  owe_kept(hca, qp);
  return Fault::kNone;
}

// IBTA oA19-28: 8 bytes, aligned, or nothing.
Fault execute_atomic_write(HcaState& hca, Qp& qp, const PacketView& view) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const wire::Reth& reth = view.reth;
  if (reth.dma_bytes != kWord || view.payload.size() != kWord) return Fault::kInvalidRequest;
  if (reth.virtual_address % kWord != 0) return Fault::kInvalidRequest;
  const auto target = hca.regions.resolve(reth.rkey, reth.virtual_address, kWord,
                                          Access::kRemoteWrite, accessor(qp));
  if (target.fault != memory::MemoryFault::kNone) return Fault::kRemoteKey;
  ReplayEntry* entry = keep(qp, view, 1);
  if (entry == nullptr) return Fault::kInvalidRequest;
  if (!memory::atomic_write(view.payload, target.base)) {
    entry->is_used = false;  // an aligned address of an unaligned region
    return Fault::kInvalidRequest;
  }
  advance(qp.responder, view, 1);
  owe_kept(hca, qp);
  return Fault::kNone;
}

// Is there memory of which this may be asked? A range of no bytes is all there is of it.
bool may_flush(const HcaState& hca, const Qp& qp, const PacketView& view) {
  const wire::Reth& reth = view.reth;
  std::uint64_t address = reth.virtual_address;
  std::uint64_t length = reth.dma_bytes;
  if (view.feth.selectivity == wire::FlushSelectivity::kRegion) {
    const memory::MemoryRegion* region = hca.regions.find(reth.rkey.value);
    if (region == nullptr) return false;
    address = region->iova;
    length = 1;
  }
  return hca.regions.resolve(reth.rkey, address, length, flush_rights(view.feth), accessor(qp), 0)
             .fault == memory::MemoryFault::kNone;
}

// IBTA annex 19. WRITEs before it have been carried out by the processor, so everybody sees them
// already; persistence is no right that any memory of ours has.
Fault execute_flush(HcaState& hca, Qp& qp, const PacketView& view) {
  if (!view.feth.is_known()) return Fault::kInvalidRequest;
  if (!may_flush(hca, qp, view)) return Fault::kRemoteKey;
  if (keep(qp, view, 1) == nullptr) return Fault::kInvalidRequest;
  advance(qp.responder, view, 1);
  owe_kept(hca, qp);
  return Fault::kNone;
}

Fault execute(HcaState& hca, Qp& qp, const PacketView& view) {
  const Kind kind = view.opcode->kind;
  if (kind == Kind::kWrite) return execute_write(hca, qp, view);
  if (kind == Kind::kSend) return execute_send(hca, qp, view);
  switch (kind) {
    case Kind::kReadRequest:
      return execute_read(hca, qp, view);
    case Kind::kCompareSwap:
    case Kind::kFetchAdd:
      return execute_atomic(hca, qp, view);
    case Kind::kAtomicWrite:
      return execute_atomic_write(hca, qp, view);
    case Kind::kFlush:
      return execute_flush(hca, qp, view);
    case Kind::kSend:
    case Kind::kWrite:
      break;  // see above
    case Kind::kReserved:
    case Kind::kReadResponse:
    case Kind::kAcknowledge:
    case Kind::kAtomicAcknowledge:
      break;  // responses, or dropped by the parser
  }
  return Fault::kInvalidRequest;
}

// The newest first: PSNs come round again, and an old entry may be of the same ones.
ReplayEntry* find_kept(RcResponder& responder, const PacketView& view, std::uint32_t& index) {
  const std::uint32_t count = responder.replay_limit;
  for (std::uint32_t back = 1; back <= count; ++back) {
    index = (responder.replay_next + count - back) % count;
    ReplayEntry& entry = responder.replay[index];
    if (entry.is_used && entry.kind == view.opcode->kind &&
        is_at_or_before(entry.first_psn, view.bth.psn) &&
        is_at_or_before(view.bth.psn, entry.last_psn)) {
      return &entry;
    }
  }
  return nullptr;
}

// C9-110: a READ may be asked for again from the middle, for what was lost; always for a part of
// what it was.
bool is_part_of(const Qp& qp, const ReplayEntry& entry, const PacketView& view) {
  const std::uint64_t offset = offset_of(entry.first_psn, view.bth.psn, qp.path_mtu);
  const wire::Reth& reth = view.reth;
  return reth.virtual_address == entry.address + offset && reth.rkey == entry.rkey &&
         reth.dma_bytes <= entry.length - offset;
}

void replay(HcaState& hca, Qp& qp, const PacketView& view) {
  std::uint32_t index = 0;
  ReplayEntry* entry = find_kept(qp.responder, view, index);
  if (entry == nullptr) return;  // C9-112: too old, nothing to say
  if (view.opcode->kind == Kind::kReadRequest) {
    if (!is_part_of(qp, *entry, view)) return;
    const Psn last = view.bth.psn + (packets_in(view.reth.dma_bytes, qp.path_mtu) - 1);
    // Who does not want the rest again has it, or waits for it.
    if (last != entry->last_psn) {
      if (!entry->is_due && !qp.responder.parts.has_of(index)) entry->granted = {};
      return owe_part(hca, qp, index, {view.bth.psn, view.bth.psn, last});
    }
    drop_parts(qp.responder, index, view.bth.psn);
    entry->answer.last = last;
  }
  entry->answer.next = entry->answer.first = view.bth.psn;
  if (!entry->is_due) {
    entry->is_repeat = true;
    // What is asked for now has to be granted now.
    if (!qp.responder.parts.has_of(index)) entry->granted = {};
  }
  owe_replay(hca, qp, index);
}

void on_duplicate(HcaState& hca, Qp& qp, const PacketView& view) {
  ++hca.counters.duplicate_requests;
  switch (view.opcode->kind) {
    case Kind::kReadRequest:
    case Kind::kCompareSwap:
    case Kind::kFetchAdd:
    case Kind::kFlush:
    case Kind::kAtomicWrite:
      replay(hca, qp, view);
      break;
    case Kind::kSend:
    case Kind::kWrite:  // C9-105: acknowledged again, with the latest PSN
      qp.responder.ack_due = true;
      owe_response(hca, qp);
      break;
    case Kind::kReserved:
    case Kind::kReadResponse:
    case Kind::kAcknowledge:
    case Kind::kAtomicAcknowledge:
      break;
  }
}

void owe_nak(HcaState& hca, Qp& qp, Fault fault) {
  qp.responder.nak_due = true;
  qp.responder.nak_fault = fault;
  qp.responder.hints.gap_was_told = false;
  // What follows in the pipe is beyond the refused request: silence until that comes again.
  qp.responder.gap_reported = true;
  owe_response(hca, qp);
}

// It was carried out: what the peer is owed. What has an answer of its own has it already.
void acknowledge(HcaState& hca, Qp& qp, const PacketView& view) {
  RcResponder& responder = qp.responder;
  if (view.opcode->ends()) responder.msn = (responder.msn + 1) & 0xff'ffff;
  if (!view.bth.ack_request || !view.opcode->is_acknowledged()) return;
  responder.ack_due = true;
  owe_response(hca, qp);
}

// What a NAK that has not left yet would ask for has come; it is acknowledged instead.
[[gnu::cold]] void take_back_nak(RcResponder& responder) {
  responder.nak_due = false;
  responder.ack_due = true;
}

// False: it was refused.
bool on_expected(HcaState& hca, Qp& qp, const PacketView& view) {
  qp.responder.gap_reported = false;
  if (qp.responder.nak_due) [[unlikely]]
    take_back_nak(qp.responder);
  Fault fault = check_order(qp.responder, view);
  if (qp.service == Service::kXrcTarget && fault == Fault::kNone) [[unlikely]]
    fault = select_srq(hca, qp, view);
  if (fault == Fault::kNone) fault = check_permission(qp, view);
  if (fault == Fault::kNone) fault = check_length(qp, view);
  if (fault == Fault::kNone) fault = execute(hca, qp, view);
  if (fault != Fault::kNone) {
    raise(hca, qp, fault);
    return false;
  }
  acknowledge(hca, qp, view);
  return true;
}

void report_gap(HcaState& hca, Qp& qp) {
  if (!qp.responder.gap_reported) raise(hca, qp, Fault::kSequence);  // C9-106: one NAK a gap
}

// Everything between two packets that came is missing.
void hint_at(HcaState& hca, Qp& qp, Psn last, Psn psn) {
  GapHints& hints = qp.responder.hints;
  for (++last; is_before(last, psn) && hints.count != GapHints::kMax; ++last) {
    hints.missing[hints.count++] = last;
  }
  if (hints.count != 0) owe_response(hca, qp);
}

[[gnu::cold]] void on_early(HcaState& hca, Qp& qp, const PacketView& view, std::int32_t ahead) {
  ++hca.counters.out_of_sequence;
  report_gap(hca, qp);
  // Behind a request that was refused, silence is what the peer expects.
  const bool is_behind_gap = qp.responder.nak_fault == Fault::kSequence;
  if (!is_behind_gap || ahead > Stash::kAheadMax) return;
  const Psn last = hca.stash.last(qp, qp.responder.expected_psn);
  hca.stash.keep(qp, view);
  if (qp.responder.hints.peer_selects) hint_at(hca, qp, last, view.bth.psn);
}

// The first request after a gap was filled tells whether the peer goes on or back.
[[gnu::cold]] void learn_of_peer(GapHints& hints, std::int32_t ahead) {
  hints.gap_was_filled = false;
  hints.peer_selects = ahead >= 0;
}

// The gap is filled: the request that waited behind it, or null. What stands behind the next gap
// stays, unless something was refused: then the peer sends everything behind it again.
[[gnu::cold]] const PacketView* next_stashed(HcaState& hca, Qp& qp) {
  RcResponder& responder = qp.responder;
  const PacketView* next = hca.stash.take(qp, responder.expected_psn);
  if (next != nullptr) {
    responder.hints.gap_was_filled = responder.hints.gap_was_told;
  } else if (responder.stashed.count != 0) {
    report_gap(hca, qp);
  }
  return next;
}

}  // namespace

void raise(HcaState& hca, Qp& qp, Fault fault) {
  const FaultRow& row = kFaults[static_cast<std::size_t>(fault)];
  if (!row.fatal) {
    owe_nak(hca, qp, fault);
    return;
  }
  if (qp.responder.receive != nullptr) {
    complete_receive(hca, qp, {.status = row.receive_status});
  } else {
    raise_event(hca, qp, row.event);
  }
  owe_nak(hca, qp, fault);
  enter_error(hca, qp);
}

void on_request(HcaState& hca, Qp& qp, const wire::PacketView& view) {
  ++hca.counters.rx_requests;
  RcResponder& responder = qp.responder;
  const std::int32_t ahead = distance(responder.expected_psn, view.bth.psn);
  if (ahead != 0) responder.has_seen_losses = true;
  if (responder.hints.gap_was_filled) learn_of_peer(responder.hints, ahead);
  if (ahead < 0) return on_duplicate(hca, qp, view);
  if (ahead > 0) return on_early(hca, qp, view, ahead);
  for (const PacketView* next = &view; next != nullptr;) {
    if (!on_expected(hca, qp, *next)) return hca.stash.forget(qp);
    next = responder.stashed.count == 0 ? nullptr : next_stashed(hca, qp);
  }
}

}  // namespace uroce::transport
