// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/made.h"

#include "verbs/context.h"

namespace uroce::verbs {

void Made::begin() {
  if (!context.engine().is_abandoned()) context.handles().inventory.add(*this);
}

void Made::end() {
  if (!is_live()) return;
  leave_device();
  has_left();
}

void Made::has_left() {
  has_ended_ = true;
  // In a child the list is as its parent's threads had it in hand.
  if (!context.engine().is_abandoned()) context.handles().inventory.remove(*this);
}

bool Made::is_live() const { return !has_ended_ && !context.engine().is_abandoned(); }

void Inventory::add(Made& object) {
  const std::lock_guard guard(mutex_);
  objects_[static_cast<std::size_t>(object.kind)].push_back(object);
}

void Inventory::remove(Made& object) {
  const std::lock_guard guard(mutex_);
  object.made_hook.unlink();
}

void Inventory::end_all() {
  for (auto& of_a_kind : objects_) {
    while (Made* const left = of_a_kind.front()) left->end();
  }
}

}  // namespace uroce::verbs
