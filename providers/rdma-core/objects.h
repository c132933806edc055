// SPDX-License-Identifier: BSD-2-Clause
// The objects that libibverbs and the application hold: a part of the private ABI's, and behind it
// the pointer to ours.
#pragma once

#include <cstdlib>
#include <memory>

#include "abi_34.h"
#include "verbs/bridge.h"

namespace uroce::provider {

template <typename Public, typename Object>
struct Holder {
  Public base;
  Object* object;
};

struct DeviceHolder {
  verbs_device base;
};
struct ContextHolder {
  verbs::Context* object;
  verbs_context base;  // grows upwards, so it is the last
};
using PdHolder = Holder<ibv_pd, verbs::Pd>;
using MrHolder = Holder<verbs_mr, verbs::Mr>;
using CqHolder = Holder<verbs_cq, verbs::Cq>;
using SrqHolder = Holder<verbs_srq, verbs::Srq>;
using QpHolder = Holder<verbs_qp, verbs::Qp>;

inline ContextHolder& holder_of(ibv_context* context) {
  auto* const extended = reinterpret_cast<verbs_context*>(reinterpret_cast<std::byte*>(context) -
                                                          offsetof(verbs_context, context));
  return *reinterpret_cast<ContextHolder*>(reinterpret_cast<std::byte*>(extended) -
                                           offsetof(ContextHolder, base));
}
// In all the others, what the application holds is the first member.
inline PdHolder& holder_of(ibv_pd* pd) { return *reinterpret_cast<PdHolder*>(pd); }
inline MrHolder& holder_of(verbs_mr* mr) { return *reinterpret_cast<MrHolder*>(mr); }
inline CqHolder& holder_of(ibv_cq* cq) { return *reinterpret_cast<CqHolder*>(cq); }
inline SrqHolder& holder_of(ibv_srq* srq) { return *reinterpret_cast<SrqHolder*>(srq); }
inline QpHolder& holder_of(ibv_qp* qp) { return *reinterpret_cast<QpHolder*>(qp); }

// Ours, or null for null.
template <typename Handle>
auto* object_of(Handle* handle) {
  return handle == nullptr ? nullptr : holder_of(handle).object;
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
// Zeroed, from malloc: libibverbs frees some of them.
template <typename Object>
std::unique_ptr<Object, Free> allocate() {
  return std::unique_ptr<Object, Free>(static_cast<Object*>(std::calloc(1, sizeof(Object))));
}

extern const verbs_context_ops kContextOps;

// The operations that have a file of their own.
void add_extended_cq_ops(verbs_context_ops& ops);
void add_extended_qp_ops(verbs_context_ops& ops);

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* initial);

}  // namespace uroce::provider
