// SPDX-License-Identifier: BSD-2-Clause
// The receive work request of a message that arrives, from its own queue or a shared one: taken
// when the message begins to need it, filled, completed.
#pragma once

#include "transport/fault.h"
#include "transport/hca_state.h"
#include "wire/parse.h"

namespace uroce::transport {

// From now on qp.responder.receive. kNotReady when none is posted.
[[nodiscard]] Fault take_receive(HcaState& hca, Qp& qp);
// Behind what was placed so far; qp.responder.message_bytes is the caller's to count.
[[nodiscard]] Fault place_received(HcaState& hca, Qp& qp, ConstBytes payload);
// A datagram, or a frame, could not be placed: its receive says why. One that is too long may be a
// stranger's, and is not the end of the queue pair.
void fail_receive(HcaState& hca, Qp& qp, Fault fault);
// With message_bytes, and what the packet that ended the message carries.
void finish_receive(HcaState& hca, Qp& qp, const wire::PacketView& view, WcOpcode opcode);

}  // namespace uroce::transport
