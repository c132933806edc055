// SPDX-License-Identifier: BSD-2-Clause
#include "transport/read_gaps.h"

#include <algorithm>

#include "transport/complete.h"
#include "transport/recovery.h"
#include "transport/window.h"

namespace uroce::transport {
namespace {

// Far below half of the ring, or "before" would lose its meaning.
inline constexpr std::uint32_t kAheadMax = 1U << 22;

bool was_asked_for(const Hole& hole) { return hole.sent_at != Instant{}; }

bool is_full(const Recovery& recovery) { return recovery.hole_count == Recovery::kHolesMax; }

// The first hole that does not end before `psn`.
std::size_t position_of(Recovery& recovery, Psn psn) {
  std::size_t at = 0;
  while (at != recovery.hole_count && is_at_or_before(recovery.holes[at].end(), psn)) ++at;
  return at;
}

bool is_in_hole(Recovery& recovery, std::size_t at, Psn psn) {
  return at != recovery.hole_count && is_at_or_before(recovery.holes[at].first, psn);
}

void insert(Recovery& recovery, std::size_t at, const Hole& hole) {
  const auto begin = recovery.holes.begin();
  std::copy_backward(begin + static_cast<std::ptrdiff_t>(at), begin + recovery.hole_count,
                     begin + recovery.hole_count + 1);
  recovery.holes[at] = hole;
  ++recovery.hole_count;
}

void erase(Recovery& recovery, std::size_t at) {
  const auto begin = recovery.holes.begin();
  if (recovery.holes[at].is_due) --recovery.due_count;
  std::copy(begin + static_cast<std::ptrdiff_t>(at) + 1, begin + recovery.hole_count,
            begin + static_cast<std::ptrdiff_t>(at));
  --recovery.hole_count;
}

// Everything from the frontier to `psn` is a hole, in as many as there are requests for it: what is
// asked for again is part of one.
void add_holes(const HcaState& hca, Qp& qp, Psn psn) {
  Recovery& recovery = qp.requester.recovery;
  while (recovery.read_frontier != psn && !is_full(recovery)) {
    const Psn first = recovery.read_frontier;
    const auto left = static_cast<std::uint32_t>(distance(first, psn));
    const std::uint32_t packets = std::min(left, read_piece(hca, qp, *read_at(qp, first), first));
    Hole hole;
    hole.first = first;
    hole.packets = packets;
    insert(recovery, recovery.hole_count, hole);
    recovery.read_frontier = first + packets;
  }
}

// A hole loses packets at its front, at its end, or in its middle. Before what has come of it
// nothing comes any more that was asked for together with it.
void fill(Recovery& recovery, std::size_t at, Psn first, std::uint32_t packets) {
  Hole& hole = recovery.holes[at];
  const auto before = static_cast<std::uint32_t>(distance(hole.first, first));
  const std::uint32_t behind = hole.packets - before - packets;
  Hole rest = hole;
  rest.first = first + packets;
  rest.packets = behind;
  if (before == 0 && behind == 0) return erase(recovery, at);
  if (before == 0) {
    hole = rest;
    return;
  }
  if (hole.is_due) --recovery.due_count;
  hole.packets = before;
  hole.is_due = false;
  hole.sent_at = {};
  if (behind == 0) return;
  if (rest.is_due) ++recovery.due_count;
  insert(recovery, at + 1, rest);
}

void make_due(HcaState& hca, Qp& qp, Hole& hole) {
  if (hole.is_due) return;
  hole.is_due = true;
  ++qp.requester.recovery.due_count;
  make_ready(hca, qp);
}

// Holes that were not asked for yet, no more at a time than the peer takes READs; of a peer that is
// not known, the oldest.
void ask(HcaState& hca, Qp& qp) {
  Recovery& recovery = qp.requester.recovery;
  const auto is_open = [](const Hole& hole) { return hole.is_due || was_asked_for(hole); };
  const std::span<Hole> all = holes(recovery);
  auto open = std::count_if(all.begin(), all.end(), is_open);
  for (Hole& hole : all) {
    if (!is_open(hole)) {
      if (&hole != all.data() && open >= qp.attributes.max_read_atomic) return;
      make_due(hca, qp, hole);
      ++open;
    }
    if (!recovery.answers_parts) return;
  }
}

// `psn` is not where a request for the first time began.
bool is_inside(const HcaState& hca, const Qp& qp, Psn psn) {
  const auto packets = static_cast<std::uint32_t>(distance(read_at(qp, psn)->first_psn, psn));
  return packets % read_piece_packets(hca, qp) != 0;
}

// What was asked for before what has come now, and has not come, was lost on the way. `asked_at`:
// when this was asked for again; 0: it comes for the first time. (Holes of one burst leave in their
// order.)
void judge_asked(HcaState& hca, Qp& qp, Psn psn, Instant asked_at) {
  Recovery& recovery = qp.requester.recovery;
  for (Hole& hole : holes(recovery)) {
    const bool was_sooner = asked_at == Instant{}      ? is_at_or_before(hole.frontier, psn)
                            : hole.sent_at == asked_at ? is_before(hole.first, psn)
                                                       : hole.sent_at < asked_at;
    if (!was_asked_for(hole) || hole.is_due || !was_sooner) continue;
    if (recovery.judged_left == 0) return;
    --recovery.judged_left;
    make_due(hca, qp, hole);
  }
}

}  // namespace

const SendWqe* read_at(const Qp& qp, Psn psn) {
  const RcRequester& requester = qp.requester;
  const std::uint32_t base = requester.oldest_unacked_psn.value();
  for (std::uint32_t i = requester.oldest_index; i != requester.assigned_index; ++i) {
    const SendWqe& wqe = qp.send_queue.at(i);
    if (wqe.operation != SendOperation::kRead || wqe.status != WcStatus::kSuccess) return nullptr;
    if ((psn - base).value() <= (wqe.last_psn - base).value()) return &wqe;
  }
  return nullptr;
}

void begin_reading(Qp& qp) {
  Recovery& recovery = qp.requester.recovery;
  stop_probe(qp.requester.round_trip);  // nothing is learnt behind a gap
  recovery.is_reading = recovery.asks_for_parts = true;
  recovery.read_frontier = qp.requester.oldest_unacked_psn;
}

std::uint32_t missing_packets(HcaState& hca, Qp& qp, Psn first, std::uint32_t packets) {
  Recovery& recovery = qp.requester.recovery;
  if ((first - qp.requester.oldest_unacked_psn.value()).value() > kAheadMax) return 0;
  if (!is_before(first, recovery.read_frontier)) {
    add_holes(hca, qp, first);
    ask(hca, qp);
    return recovery.read_frontier == first ? packets : 0;
  }
  const std::size_t at = position_of(recovery, first);
  if (!is_in_hole(recovery, at, first)) return 0;  // it has come before
  const Hole& hole = recovery.holes[at];
  const auto left = static_cast<std::uint32_t>(distance(first, hole.end()));
  const bool splits = first != hole.first && packets < left;
  return splits && is_full(recovery) ? 0 : std::min(packets, left);
}

void note_read(HcaState& hca, Qp& qp, const wire::PacketView& view, std::uint32_t packets) {
  Recovery& recovery = qp.requester.recovery;
  const Psn first = view.bth.psn;
  if (first == recovery.read_frontier) {
    recovery.read_frontier = first + packets;
    judge_asked(hca, qp, first, {});
  } else {
    const std::size_t at = position_of(recovery, first);
    const Instant asked_at = recovery.holes[at].sent_at;
    if (was_asked_for(recovery.holes[at]) && view.opcode->begins() && is_inside(hca, qp, first)) {
      recovery.answers_parts = true;
    }
    fill(recovery, at, first, packets);
    if (asked_at != Instant{}) judge_asked(hca, qp, first, asked_at);
  }
  ask(hca, qp);
}

Psn oldest_missing(const Qp& qp) {
  const Recovery& recovery = qp.requester.recovery;
  return recovery.hole_count == 0 ? recovery.read_frontier : recovery.holes.front().first;
}

void ask_again(HcaState& hca, Qp& qp) { make_due(hca, qp, qp.requester.recovery.holes.front()); }

}  // namespace uroce::transport
