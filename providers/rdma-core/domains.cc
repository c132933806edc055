// SPDX-License-Identifier: BSD-2-Clause
// Thread domains, and the parent domains that join one to a protection domain.
#include "objects.h"

namespace uroce::provider {
namespace {

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attributes) {
  auto holder = allocate<TdHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::alloc_td(*object_of(context), *attributes);
  if (holder->object == nullptr) return nullptr;
  holder->base.context = context;
  return &holder.release()->base;
}

int dealloc_td(ibv_td* td) {
  if (const int error = verbs::dealloc_td(object_of(td)); error != 0) return told(error);
  std::free(&holder_of(td));
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) {
  auto holder = allocate<PdHolder>();
  if (holder == nullptr) return nullptr;
  holder->object =
      verbs::alloc_parent_domain(*object_of(context), holder->base, object_of(attributes->pd),
                                 object_of(attributes->td), *attributes);
  if (holder->object == nullptr) return nullptr;
  holder->base.context = context;
  holder->base.handle = holder->object->id.value;
  return &holder.release()->base;
}

}  // namespace

void add_domain_ops(verbs_context_ops& ops) {
  ops.alloc_parent_domain = alloc_parent_domain;
  ops.alloc_td = alloc_td;
  ops.dealloc_td = dealloc_td;
}

}  // namespace uroce::provider
