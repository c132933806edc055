// SPDX-License-Identifier: BSD-2-Clause
// The responder of an unreliable connection (IBTA 9.8.2.2): a message of which a packet is missing,
// or that may not be, is dropped without a word, and the next one begins with a FIRST or ONLY
// whatever its PSN. The receive request of a dropped message serves the next.
#include "transport/complete.h"
#include "transport/execute.h"
#include "transport/unreliable.h"

namespace uroce::transport {
namespace {

Fault execute(HcaState& hca, Qp& qp, const wire::PacketView& view) {
  if (Fault f = check_permission(qp, view); f != Fault::kNone) return f;
  if (Fault f = check_length(qp, view); f != Fault::kNone) return f;
  return view.opcode->kind == wire::Kind::kSend ? execute_send(hca, qp, view)
                                                : execute_write(hca, qp, view);
}

// What our own application did wrong: its receive request tells it. All else is the peer's, or
// nobody's: there was no receive request.
bool is_own(Fault fault) {
  return fault == Fault::kReceiveTooShort || fault == Fault::kReceiveMemory;
}

void drop_message(HcaState& hca, RcResponder& responder) {
  responder.in_message = false;
  ++hca.counters.unreliable_dropped;
}

}  // namespace

void on_uc_request(HcaState& hca, Qp& qp, const wire::PacketView& view) {
  ++hca.counters.rx_requests;
  RcResponder& responder = qp.responder;
  if (view.bth.psn != responder.expected_psn) {
    ++hca.counters.out_of_sequence;
    if (responder.in_message) drop_message(hca, responder);
  }
  responder.expected_psn = view.bth.psn + view.packet_count;  // whatever becomes of it
  if (view.opcode->begins() && responder.in_message) drop_message(hca, responder);
  // Of a message whose beginning is missing, or was refused.
  if (check_order(responder, view) != Fault::kNone) {
    if (responder.in_message) drop_message(hca, responder);
    return;
  }
  responder.expected_psn = view.bth.psn;  // execution moves it on
  const Fault fault = execute(hca, qp, view);
  if (fault == Fault::kNone) return;
  responder.expected_psn = view.bth.psn + view.packet_count;
  drop_message(hca, responder);
  if (!is_own(fault)) return;
  complete_receive(hca, qp, {.status = kFaults[static_cast<std::size_t>(fault)].receive_status});
  enter_error(hca, qp);
}

}  // namespace uroce::transport
