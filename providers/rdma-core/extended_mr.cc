// SPDX-License-Identifier: BSD-2-Clause
// Memory regions beyond ibv_reg_mr: null ones, those behind a dma-buf, and advice for those on
// demand.
#include "objects.h"

namespace uroce::provider {
namespace {

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  ibv_mr* const mr = publish(pd, verbs::alloc_null_mr(*object_of(pd)), nullptr, SIZE_MAX, 0);
  if (mr == nullptr) return nullptr;
  mr->rkey = 0;  // man ibv_alloc_null_mr: only the L_Key is valid
  reinterpret_cast<verbs_mr*>(mr)->mr_type = IBV_MR_TYPE_NULL_MR;
  return mr;
}

ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                      int descriptor, int access) {
  verbs::Mr* const object =
      verbs::reg_dmabuf_mr(*object_of(pd), offset, length, iova, descriptor, access);
  ibv_mr* const mr = publish(pd, object, nullptr, length, access);
  // Its memory is not the application's to be kept from a child.
  if (mr != nullptr) reinterpret_cast<verbs_mr*>(mr)->mr_type = IBV_MR_TYPE_DMABUF_MR;
  return mr;
}

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list,
              std::uint32_t count) {
  return told(verbs::advise_mr(*object_of(pd), advice, flags, {list, count}));
}

}  // namespace

void add_extended_mr_ops(verbs_context_ops& ops) {
  ops.advise_mr = advise_mr;
  ops.alloc_null_mr = alloc_null_mr;
  ops.reg_dmabuf_mr = reg_dmabuf_mr;
}

}  // namespace uroce::provider
