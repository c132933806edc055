// SPDX-License-Identifier: BSD-2-Clause
#include "transport/raw_packet.h"

#include "transport/complete.h"
#include "transport/data_frame.h"
#include "transport/receive.h"
#include "transport/unreliable.h"
#include "wire/network.h"

namespace uroce::transport {
namespace {

// IEEE 802.3 counts a VLAN tag on top of the longest frame. The sender's pieces may be cut
// anywhere.
bool is_tagged(std::span<const ConstBytes> pieces) {
  constexpr std::size_t kTypeAt = 12;
  constexpr std::array<std::byte, 2> kVlanType{std::byte{0x81}, std::byte{0x00}};
  std::size_t at = 0;
  std::size_t found = 0;
  for (const ConstBytes piece : pieces) {
    while (found < kVlanType.size() && kTypeAt + found < at + piece.size()) {
      if (piece[kTypeAt + found - at] != kVlanType[found]) return false;
      ++found;
    }
    at += piece.size();
  }
  return found == kVlanType.size();
}

WcStatus check_length(const LinkFacts& link, std::uint32_t bytes,
                      std::span<const ConstBytes> pieces) {
  if (bytes < wire::kEthernetHeaderBytes) return WcStatus::kLocalLengthError;
  if (bytes <= link.max_frame_bytes) return WcStatus::kSuccess;
  const bool fits = bytes <= link.max_frame_bytes + wire::kVlanTagBytes && is_tagged(pieces);
  return fits ? WcStatus::kSuccess : WcStatus::kLocalLengthError;
}

bool takes_frames(const Qp& qp) {
  const QpState state = qp.state.load(std::memory_order_relaxed);
  return state == QpState::kRtr || state == QpState::kRts || state == QpState::kSqd ||
         state == QpState::kSqe;
}

// Where `target` receives a frame.
Qp& queue_for(Qp& target, const steering::FrameKey& key) {
  const Spread* const spread = target.spread;
  if (spread == nullptr) return target;
  return *spread->queues[steering::hash_of(spread->rule, key) & (spread->queues.size() - 1)];
}

void receive(HcaState& hca, Qp& qp, ConstBytes frame) {
  if (!takes_frames(qp) || take_receive(hca, qp) != Fault::kNone) {
    ++hca.counters.raw_dropped;
    return;
  }
  ++hca.counters.raw_received;
  qp.responder.message_bytes = 0;
  if (const Fault fault = place_received(hca, qp, frame); fault != Fault::kNone) {
    return fail_receive(hca, qp, fault);
  }
  complete_receive(hca, qp, {.byte_count = static_cast<std::uint32_t>(frame.size())});
}

}  // namespace

bool next_raw_packet(HcaState& hca, Qp& qp, TxBurst& burst) {
  if (!has_unreliable_request(qp)) return false;
  RcRequester& requester = qp.requester;
  SendWqe& wqe = qp.send_queue.at(requester.send_index);
  requester.assigned_index = requester.send_index + 1;
  // More than any link takes need not be looked up.
  const bool is_too_long = wqe.length > UINT16_MAX;
  const Gathered gathered = is_too_long ? Gathered{} : gather(hca, qp, wqe, 0, wqe.length, burst);
  if (gathered.is_fault)
    return hold_unreliable_fault(hca, qp, wqe, WcStatus::kLocalProtectionError);
  const WcStatus status = check_length(hca.links[qp.link].facts, wqe.length,
                                       burst.free_pieces().first(gathered.pieces));
  if (status != WcStatus::kSuccess) return hold_unreliable_fault(hca, qp, wqe, status);
  TxFrame& frame = burst.next();
  frame.path = nullptr;
  frame.header_bytes = 0;
  frame.payload_bytes = wqe.length;
  frame.owner = &qp;
  frame.cookie =
      FrameTag{FrameTag::Kind::kRequest, requester.send_psn, requester.send_index}.cookie();
  burst.commit(gathered.pieces);
  ++requester.send_index;
  await_settlement(hca, qp);
  return true;
}

void on_raw_packet(HcaState& hca, ConstBytes frame, bool is_roce) {
  const steering::FrameKey key = steering::classify(frame);
  hca.flows.dispatch(key, is_roce, [&](const steering::Flow& flow) {
    receive(hca, queue_for(*static_cast<Qp*>(flow.target), key), frame);
  });
}

}  // namespace uroce::transport
