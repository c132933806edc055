// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/td.h"

#include <cerrno>
#include <new>

namespace uroce::verbs {

Td* alloc_td(Context& context, const ibv_td_init_attr& attributes) {
  if (attributes.comp_mask != 0) {
    errno = EINVAL;
    return nullptr;
  }
  Td* td = new (std::nothrow) Td{context};
  if (td == nullptr) errno = ENOMEM;
  return td;
}

int dealloc_td(Td* td) {
  if (td->users.load(std::memory_order_acquire) != 0) return EBUSY;
  delete td;
  return 0;
}

}  // namespace uroce::verbs
