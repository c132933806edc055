// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/pd.h"

#include <cerrno>
#include <new>

namespace uroce::verbs {

Pd* alloc_pd(Context& context) {
  engine::Engine& engine = context.engine();
  if (engine.is_abandoned()) {
    errno = EIO;
    return nullptr;
  }
  if (!engine.quotas().pd.take()) {
    errno = ENOMEM;
    return nullptr;
  }
  Pd* pd = new (std::nothrow) Pd{context, engine.new_pd()};
  if (pd == nullptr) {
    engine.quotas().pd.give_back();
    errno = ENOMEM;
  }
  return pd;
}

int dealloc_pd(Pd* pd) {
  if (pd->users.load(std::memory_order_acquire) != 0) return EBUSY;
  pd->context.engine().quotas().pd.give_back();
  delete pd;
  return 0;
}

}  // namespace uroce::verbs
