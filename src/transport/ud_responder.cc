// SPDX-License-Identifier: BSD-2-Clause
// The responder of unreliable datagrams (IBTA 9.8.3.2): the Q_Key must be the QP's; what arrives is
// placed behind 40 bytes that say where it is from. A datagram for which no receive request waits
// is lost.
#include "transport/receive.h"
#include "transport/unreliable.h"
#include "wire/grh.h"

namespace uroce::transport {
namespace {

Fault place(HcaState& hca, Qp& qp, const wire::PacketView& view) {
  const std::uint64_t bytes = wire::kGrhBytes + view.payload.size();
  if (bytes > qp.responder.receive->length) return Fault::kReceiveTooShort;
  const wire::Grh grh = wire::grh_of(*view.packet);
  if (Fault f = place_received(hca, qp, grh); f != Fault::kNone) return f;
  if (Fault f = place_received(hca, qp, view.payload); f != Fault::kNone) return f;
  qp.responder.message_bytes = static_cast<std::uint32_t>(bytes);
  return Fault::kNone;
}

}  // namespace

void on_datagram(HcaState& hca, Qp& qp, const wire::PacketView& view) {
  if (view.deth.qkey != qp.attributes.qkey) {
    ++hca.counters.rx_bad_qkey;
    return;
  }
  ++hca.counters.rx_requests;
  if (take_receive(hca, qp) != Fault::kNone) {
    ++hca.counters.unreliable_dropped;
    return;
  }
  qp.responder.message_bytes = 0;
  if (const Fault fault = place(hca, qp, view); fault != Fault::kNone) {
    return fail_receive(hca, qp, fault);
  }
  finish_receive(hca, qp, view, WcOpcode::kReceive);
}

}  // namespace uroce::transport
