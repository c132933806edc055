// SPDX-License-Identifier: BSD-2-Clause
// What holds after every command.
#include <algorithm>
#include <cstring>

#include "fuzz/check.h"
#include "fuzz/machine.h"

namespace uroce::fuzz {

using namespace transport;

namespace {

std::uint32_t steps(Psn from, Psn to) { return (to - from.value()).value(); }

void check_requester(const Qp& qp) {
  const RcRequester& requester = qp.requester;
  const std::uint32_t posted = qp.send_queue.posted();
  const std::uint32_t unfinished = posted - requester.oldest_index;
  check(unfinished <= qp.send_queue.capacity(), "no more is unfinished than fits");
  check(requester.send_index - requester.oldest_index <=
                requester.assigned_index - requester.oldest_index &&
            requester.assigned_index - requester.oldest_index <= unfinished,
        "oldest, sending and assigned position are in this order");
  const std::uint32_t outstanding = steps(requester.oldest_unacked_psn, requester.next_psn);
  check(qp.state.load() == QpState::kErr ||
            steps(requester.oldest_unacked_psn, requester.send_psn) <= outstanding,
        "the sending position is among the outstanding packets");
  check(outstanding <= (1U << 22) + 0x80'0000, "the window of PSNs is kept");
  check(requester.reads_outstanding <= kReadAtomicMax, "no more READs are open than agreed");
  check(qp.peer == nullptr || qp.peer->window_used == requester.window_used,
        "the peer's window holds what its only user sent");
}

// What is sent again is among what was sent and not acknowledged.
void check_recovery(const Qp& qp) {
  const RcRequester& requester = qp.requester;
  const Recovery& recovery = requester.recovery;
  const std::uint32_t sent = steps(requester.oldest_unacked_psn, requester.send_psn);
  const auto holes = std::span(recovery.holes).first(recovery.hole_count);
  for (const Hole& hole : holes) {
    check(hole.packets != 0 && steps(requester.oldest_unacked_psn, hole.first) < sent &&
              steps(requester.oldest_unacked_psn, hole.end()) <= sent,
          "only what was sent is sent again");
  }
  check(recovery.due_count == std::ranges::count_if(holes, &Hole::is_due),
        "the holes that are due are counted");
}

// Without it, a lost packet would be waited for for ever.
void check_timer(const Qp& qp) {
  const QpState state = qp.state.load();
  if (state != QpState::kRts && state != QpState::kSqd) return;
  if (qp.attributes.timeout == 0 || qp.requester.oldest_index == qp.requester.assigned_index)
    return;
  check(qp.ack_timer.is_running(), "while something is unacknowledged, a timer runs");
}

void check_responder(const Hca& hca, const Qp& qp) {
  const RcResponder& responder = qp.responder;
  const std::uint32_t due = responder.due_tail - responder.due_head;
  check(due <= kReplayMax, "no more answers are due than can be kept");
  check(due == static_cast<std::uint32_t>(
                   std::ranges::count_if(responder.replay, &ReplayEntry::is_due)),
        "each answer that is due is due once");
  const bool owes = due != 0 || responder.parts.count != 0 || responder.ack_due ||
                    responder.nak_due || responder.hints.count != 0;
  check(hca.has_responses_due() == owes, "what is owed is known to be");
}

}  // namespace

void Machine::check_all() const {
  std::size_t offset = 0;
  const auto check_until = [&](std::size_t end) {
    check(std::memcmp(&pristine_[offset], &endpoint_.buffer[offset], end - offset) == 0,
          "only bytes that were granted have changed");
  };
  for (const Area& area : kAreas) {
    const bool is_writable =
        area.pd == test::Endpoint::kPd && area.access != memory::Access::kRemoteRead;
    if (!is_writable) continue;
    check_until(area.offset);
    offset = area.offset + area.bytes;
  }
  check_until(kBufferBytes);
  check_requester(qp_->qp);
  check_recovery(qp_->qp);
  check_timer(qp_->qp);
  check_responder(endpoint_.hca, qp_->qp);
}

}  // namespace uroce::fuzz
