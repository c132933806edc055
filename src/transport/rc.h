// SPDX-License-Identifier: BSD-2-Clause
// The rules of the reliable connection, one file for each heading of IBTA 9.7: requester generates
// requests, requester receives responses, responder receives requests, responder generates
// responses. All are free functions over the plain structs in qp.h.
#pragma once

#include <cstdint>

#include "transport/burst.h"
#include "transport/hca_state.h"
#include "wire/parse.h"

namespace uroce::transport {

// What a TxFrame's cookie says, so that a refused frame can be unsent.
struct FrameTag {
  enum class Kind : std::uint8_t { kRequest, kResend, kResponse, kPart, kAck, kNak, kHint };
  Kind kind = Kind::kRequest;
  Psn psn;
  // Of the work request, or of the replay entry; of a part, above its 8 bits, the packets behind.
  std::uint32_t index = 0;

  [[nodiscard]] constexpr std::uint64_t cookie() const {
    return std::uint64_t{index} << 32 | std::uint64_t{psn.value()} << 8 |
           static_cast<std::uint8_t>(kind);
  }
  static constexpr FrameTag of(std::uint64_t cookie) {
    return {static_cast<Kind>(cookie & 0xff), Psn(static_cast<std::uint32_t>(cookie >> 8)),
            static_cast<std::uint32_t>(cookie >> 32)};
  }
};
static_assert(FrameTag::of(FrameTag{FrameTag::Kind::kAck, Psn(0xabcdef), 7}.cookie()).index == 7);

// How a responder says that more than the expected packet is missing, to a requester that sends
// only what is missing: an acknowledgement as far before the expected PSN as the missing packet is
// behind it. It acknowledges nothing new, so to any other requester it is an old one that was late.
struct GapHint {
  static constexpr Psn psn(Psn expected, Psn missing) {
    return expected - 1 - static_cast<std::uint32_t>(distance(expected, missing));
  }
  static constexpr Psn missing(Psn oldest_unacked, Psn hint) {
    return oldest_unacked + static_cast<std::uint32_t>(distance(hint, oldest_unacked - 1));
  }
};
static_assert(GapHint::missing(Psn(2), GapHint::psn(Psn(2), Psn(7))) == Psn(7));

inline void address_frame(TxFrame& frame, Qp& qp, FrameTag tag) {
  frame.path = &qp.attributes.path;
  frame.segment_bytes = qp.path_mtu;
  frame.owner = &qp;
  frame.cookie = tag.cookie();
}

// Behind the last request that may be sent. IBTA 10.3.1.5: in SQD what was begun is finished, and
// nothing else is begun.
inline std::uint32_t requests_end(const Qp& qp) {
  return qp.state.load(std::memory_order_relaxed) == QpState::kSqd ? qp.requester.assigned_index
                                                                   : qp.send_queue.posted();
}

// May the requester have anything to send?
inline bool has_request(const Qp& qp) {
  const RcRequester& requester = qp.requester;
  const QpState state = qp.state.load(std::memory_order_relaxed);
  if ((state != QpState::kRts && state != QpState::kSqd) || requester.rnr_waiting) return false;
  return requester.send_index != requests_end(qp) || requester.recovery.due_count != 0;
}

// rc_requester_send.cc. Of one that has_request(): one frame into the burst; false when it cannot
// be sent now.
[[nodiscard]] bool next_request(HcaState& hca, Instant now, Qp& qp, TxBurst& burst);
void unsend_request(HcaState& hca, Qp& qp, FrameTag tag);

// rc_requester_receive.cc
void on_response(HcaState& hca, Instant now, Qp& qp, const wire::PacketView& view);

// rc_responder_receive.cc
void on_request(HcaState& hca, Qp& qp, const wire::PacketView& view);
// The request in hand, or the response being given, cannot be carried out.
void raise(HcaState& hca, Qp& qp, Fault fault);

// rc_responder_send.cc. One frame into the burst; false when nothing is due.
[[nodiscard]] bool next_response(HcaState& hca, Qp& qp, TxBurst& burst);
void unsend_response(HcaState& hca, Qp& qp, FrameTag tag);
// Something became due.
void owe_response(HcaState& hca, Qp& qp);
void owe_replay(HcaState& hca, Qp& qp, std::uint32_t entry);
// A part of what `entry` was answered with, once more.
[[gnu::cold]] void owe_part(HcaState& hca, Qp& qp, std::uint32_t entry, const ReadAnswer& answer);
// Of that READ, those that begin at `from` or later.
[[gnu::cold]] void drop_parts(RcResponder& responder, std::uint32_t entry, Psn from);
// Takes back a repeated answer that waits to be sent: the peer has had it. False: it is the first.
bool cancel_repeat(RcResponder& responder, std::uint32_t entry);
// Nothing is due any more (RESET, or ERR at the application's wish).
void forget_responses(HcaState& hca, Qp& qp);

}  // namespace uroce::transport
