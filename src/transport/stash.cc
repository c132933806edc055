// SPDX-License-Identifier: BSD-2-Clause
#include "transport/stash.h"

#include <algorithm>

namespace uroce::transport {
void Stash::keep(Qp& qp, const wire::PacketView& view) {
  StashedPackets& kept = qp.responder.stashed;
  const Psn psn = view.bth.psn;
  if (view.packet_count != 1 || view.payload.size() > sizeof(StashSlot::payload) ||
      kept.count == kPacketsPerQpMax) {
    return;
  }
  // Behind the last that is before it; packets mostly come in their order.
  std::uint16_t behind = kept.last;
  while (behind != 0 && is_before(psn, entry(behind).psn)) behind = entry(behind).previous;
  if (behind != 0 && entry(behind).psn == psn) return;
  const std::uint16_t position = allocate(qp);
  if (position == 0) return;

  StashSlot& slot = slots_[position - 1U];
  std::ranges::copy(view.payload, slot.payload.begin());
  slot.view = view;
  slot.view.packet = nullptr;
  slot.view.payload = ConstBytes(slot.payload).first(view.payload.size());
  const std::uint16_t next = behind == 0 ? kept.first : entry(behind).next;
  entry(position) = {next, behind, psn};
  (behind == 0 ? kept.first : entry(behind).next) = position;
  (next == 0 ? kept.last : entry(next).previous) = position;
  ++kept.count;
  qp.stash_hook.unlink();
  holders_.push_back(qp);
}

const wire::PacketView* Stash::take(Qp& qp, Psn expected) {
  StashedPackets& kept = qp.responder.stashed;
  while (kept.first != 0 && is_before(entry(kept.first).psn, expected)) release_first(qp);
  if (kept.first == 0 || entry(kept.first).psn != expected) return nullptr;
  const StashSlot& slot = slots_[kept.first - 1U];
  release_first(qp);
  return &slot.view;
}

void Stash::forget(Qp& qp) {
  while (qp.responder.stashed.first != 0) release_first(qp);
}

// 0: there is none. May take everything from another QP.
std::uint16_t Stash::allocate(Qp& qp) {
  if (free_ == 0 && unused_ < entries_.size()) return ++unused_;
  if (free_ == 0) {
    Qp* const oldest = holders_.front();
    if (oldest == nullptr || oldest == &qp) return 0;
    forget(*oldest);
  }
  const std::uint16_t position = free_;
  free_ = entry(position).next;
  return position;
}

void Stash::release_first(Qp& qp) {
  StashedPackets& kept = qp.responder.stashed;
  const std::uint16_t position = kept.first;
  kept.first = entry(position).next;
  (kept.first == 0 ? kept.last : entry(kept.first).previous) = 0;
  entry(position).next = free_;
  free_ = position;
  if (--kept.count == 0) qp.stash_hook.unlink();
}

}  // namespace uroce::transport
