// SPDX-License-Identifier: BSD-2-Clause
#include "transport/remote_invalidate.h"

namespace uroce::transport {
namespace {

// Requests take effect in their order, but a READ's answer is made when it is sent: what it was
// granted through the window, it gets from the region behind it.
void redirect(HcaState& hca, ReplayEntry& entry, RKey key) {
  if (entry.kind != wire::Kind::kReadRequest || entry.rkey != key) return;
  const memory::RegionAddress source = hca.regions.behind(key, entry.address);
  entry.granted = source.key;
  entry.value = source.address;
}

void redirect_answers(HcaState& hca, RcResponder& responder, RKey key) {
  for (std::uint32_t i = responder.due_head; i != responder.due_tail; ++i) {
    redirect(hca, responder.replay[responder.due[i % kReplayMax]], key);
  }
  for (std::size_t i = 0; i < responder.parts.count; ++i) {
    redirect(hca, responder.replay[responder.parts.parts[i].entry], key);
  }
}

}  // namespace

Fault invalidate_for_peer(HcaState& hca, Qp& qp, RKey key) {
  redirect_answers(hca, qp.responder, key);
  return hca.regions.invalidate(key, accessor(qp)) ? Fault::kNone : Fault::kInvalidateKey;
}

}  // namespace uroce::transport
