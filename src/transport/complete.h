// SPDX-License-Identifier: BSD-2-Clause
// How work ends: completions staged, events raised, queues flushed (IBTA 10.7.3, 10.8.5, 10.3.1).
// One completion a work request, in the order in which they were posted.
#pragma once

#include "transport/hca_state.h"

namespace uroce::transport {

// The oldest send request ends. Staged if it was signalled or failed; otherwise the next completion
// gives its slot back.
void complete_send(HcaState& hca, Qp& qp, WcStatus status, std::uint32_t byte_count);

// The facts of a receive completion that depend on how the message came.
struct Received {
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kReceive;
  std::uint8_t flags = 0;
  std::uint32_t byte_count = 0;
  std::uint32_t immediate = 0;
  bool solicited = false;
  Qpn source{};                    // of a datagram
  std::uint8_t service_level = 0;  // of a datagram: its packet_kind
};
// The receive WQE in hand ends.
void complete_receive(HcaState& hca, Qp& qp, const Received& received);

// In SQD: what was begun is finished.
void report_drained(HcaState& hca, Qp& qp);

void raise_event(HcaState& hca, Qp& qp, EventType type);

// IBTA 10.2.9.2: too few requests left raise the event once and disarm the limit.
void check_srq_limit(HcaState& hca, Srq& srq);

// UC and UD, an error of the send queue: to state SQE, where receiving goes on, with the send queue
// flushed.
void enter_send_error(HcaState& hca, Qp& qp);
void flush_send_queue(HcaState& hca, Qp& qp);
// The send queue is emptied without completions: what its requests held is let go of.
void abandon_send_queue(Qp& qp);

// To state ERR, with everything outstanding flushed: send queue first, each queue in order.
void enter_error(HcaState& hca, Qp& qp);
// What was posted in state ERR is flushed too.
void flush(HcaState& hca, Qp& qp);

// The oldest send request fails, and the QP (UC and UD: its send queue) with it.
void fail_oldest(HcaState& hca, Qp& qp, WcStatus status);

}  // namespace uroce::transport
