// SPDX-License-Identifier: BSD-2-Clause
// What a packet of a SEND or WRITE does where it arrives, in its place and in order, whatever the
// service: the checks of IBTA 9.7.4.1 and 9.8.2.2, then the effect.
#pragma once

#include "transport/fault.h"
#include "transport/hca_state.h"
#include "wire/parse.h"

namespace uroce::transport {

// May it come next in the message at hand?
[[nodiscard]] Fault check_order(const RcResponder& responder, const wire::PacketView& view);
// Does the QP allow the operation?
[[nodiscard]] Fault check_permission(const Qp& qp, const wire::PacketView& view);
// What FLUSH asks for of the QP and of the memory.
[[nodiscard]] memory::Access flush_rights(const wire::Feth& feth);
// Is it as long as its place in the message wants it?
[[nodiscard]] Fault check_length(const Qp& qp, const wire::PacketView& view);

// Carried out, and the next packet expected; or nothing has changed but a receive taken.
[[nodiscard]] Fault execute_send(HcaState& hca, Qp& qp, const wire::PacketView& view);
[[nodiscard]] Fault execute_write(HcaState& hca, Qp& qp, const wire::PacketView& view);

// A request of so many packets was carried out: what comes next.
void advance(RcResponder& responder, const wire::PacketView& view, std::uint32_t packets);

}  // namespace uroce::transport
