// SPDX-License-Identifier: BSD-2-Clause
#include "sim/invariants.h"

#include "transport/segment.h"

namespace uroce::sim {

using namespace transport;

namespace {

// As the requester's own limit, and a message of the largest size on top of it.
inline constexpr std::uint32_t kOutstandingMax = (1U << 22) + packets_in(kMessageBytesMax, 256) / 4;

}  // namespace

void check_limits(Oracle& oracle, const Qp& qp) {
  const RcRequester& requester = qp.requester;
  if (requester.reads_outstanding > qp.attributes.max_read_atomic) {
    oracle.violated("QP %#x has %u READs and atomics outstanding, and may have %u", qp.number.value,
                    requester.reads_outstanding, qp.attributes.max_read_atomic);
  }
  const std::uint32_t oldest = requester.oldest_unacked_psn.value();
  const std::uint32_t sent = (requester.send_psn - oldest).value();
  const std::uint32_t given = (requester.next_psn - oldest).value();
  if (sent > given || given > kOutstandingMax) {
    oracle.violated("QP %#x: PSNs %#x, %#x and %#x are out of order", qp.number.value, oldest,
                    requester.send_psn.value(), requester.next_psn.value());
  }
  if (qp.peer != nullptr && requester.window_used > qp.peer->window_used) {
    oracle.violated("QP %#x holds more of its peer's window than all do", qp.number.value);
  }
}

void check_nothing_left(Oracle& oracle, Node& node) {
  Hca& hca = node.hca();
  if (!hca.is_quiet()) oracle.violated("node %u has something to send", node.index());
  if (hca.has_responses_due()) oracle.violated("node %u owes responses", node.index());
  if (hca.next_deadline() != Instant::never()) oracle.violated("node %u has a timer", node.index());
  if (!hca.is_unused()) oracle.violated("node %u keeps something of a QP", node.index());
  for (LinkId id = 0; id < kLinkCount; ++id) {
    for (unsigned to = 0; to < kNodesMax; ++to) {
      const Peer* const peer = node.peer(id, to);
      if (peer == nullptr || peer->window_used == 0) continue;
      oracle.violated("node %u: %u bytes of a window are never given back", node.index(),
                      peer->window_used);
    }
  }
}

}  // namespace uroce::sim
