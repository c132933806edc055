// SPDX-License-Identifier: BSD-2-Clause
// The objects that libibverbs and the application hold: a part of the private ABI's, and behind it
// the pointer to ours.
#pragma once

#include <cstdlib>
#include <memory>

#include "abi_34.h"
#include "steering/hash.h"
#include "verbs/bridge.h"
#include "verbs/failed.h"

namespace uroce::provider {

using verbs::told;

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
  ContextHolder* next;  // import.cc
  verbs_context base;   // grows upwards, so it is the last
};
using PdHolder = Holder<ibv_pd, verbs::Pd>;
using TdHolder = Holder<ibv_td, verbs::Td>;
using DmHolder = Holder<verbs_dm, verbs::Dm>;
using MrHolder = Holder<verbs_mr, verbs::Mr>;
using CqHolder = Holder<verbs_cq, verbs::Cq>;
using SrqHolder = Holder<verbs_srq, verbs::Srq>;
using QpHolder = Holder<verbs_qp, verbs::Qp>;
using XrcdHolder = Holder<verbs_xrcd, verbs::Xrcd>;
using FlowHolder = Holder<ibv_flow, verbs::Flow>;
using WqHolder = Holder<ibv_wq, verbs::Wq>;
using RwqTableHolder = Holder<ibv_rwq_ind_table, verbs::RwqTable>;

inline ContextHolder& holder_of(ibv_context* context) {
  auto* const extended = reinterpret_cast<verbs_context*>(reinterpret_cast<std::byte*>(context) -
                                                          offsetof(verbs_context, context));
  return *reinterpret_cast<ContextHolder*>(reinterpret_cast<std::byte*>(extended) -
                                           offsetof(ContextHolder, base));
}
// In all the others, what the application holds is the first member.
inline PdHolder& holder_of(ibv_pd* pd) { return *reinterpret_cast<PdHolder*>(pd); }
inline TdHolder& holder_of(ibv_td* td) { return *reinterpret_cast<TdHolder*>(td); }
inline DmHolder& holder_of(ibv_dm* dm) { return *reinterpret_cast<DmHolder*>(dm); }
inline MrHolder& holder_of(verbs_mr* mr) { return *reinterpret_cast<MrHolder*>(mr); }
inline CqHolder& holder_of(ibv_cq* cq) { return *reinterpret_cast<CqHolder*>(cq); }
inline SrqHolder& holder_of(ibv_srq* srq) { return *reinterpret_cast<SrqHolder*>(srq); }
inline QpHolder& holder_of(ibv_qp* qp) { return *reinterpret_cast<QpHolder*>(qp); }
inline XrcdHolder& holder_of(verbs_xrcd* xrcd) { return *reinterpret_cast<XrcdHolder*>(xrcd); }
inline FlowHolder& holder_of(ibv_flow* flow) { return *reinterpret_cast<FlowHolder*>(flow); }
inline WqHolder& holder_of(ibv_wq* wq) { return *reinterpret_cast<WqHolder*>(wq); }
inline RwqTableHolder& holder_of(ibv_rwq_ind_table* table) {
  return *reinterpret_cast<RwqTableHolder*>(table);
}
inline verbs_xrcd* extended(ibv_xrcd* xrcd) { return reinterpret_cast<verbs_xrcd*>(xrcd); }

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

// What a destroy waits on.
template <typename Public>
void init_waiting(Public& object) {
  pthread_mutex_init(&object.mutex, nullptr);
  pthread_cond_init(&object.cond, nullptr);
}
template <typename Public>
void end_waiting(Public& object) {
  pthread_mutex_destroy(&object.mutex);
  pthread_cond_destroy(&object.cond);
}

extern const verbs_context_ops kContextOps;

// The operations that have a file of their own.
void add_device_memory_ops(verbs_context_ops& ops);
void add_domain_ops(verbs_context_ops& ops);
void add_extended_mr_ops(verbs_context_ops& ops);
void add_extended_cq_ops(verbs_context_ops& ops);
void add_extended_qp_ops(verbs_context_ops& ops);
void add_raw_packet_ops(verbs_context_ops& ops);
void add_xrc_ops(verbs_context_ops& ops);
void add_import_ops(verbs_context_ops& ops);

// A context of the device over `cmd_fd`, with nothing behind it yet; null without memory.
ContextHolder* make_context(ibv_device* device, int cmd_fd);
// With what is behind it, ready for the application; if that is null, it is gone, and errno stays.
verbs_context* publish(ContextHolder* holder);

// Contexts by their descriptors.
void remember(ContextHolder& context);
void forget(ContextHolder& context);
verbs_context* import_context(ibv_device* device, int cmd_fd);

ibv_mr* publish(ibv_pd* pd, verbs::Mr* mr, void* address, std::size_t length, int access);
// As the application sees it; null if its object is.
ibv_srq* publish(std::unique_ptr<SrqHolder, Free> holder, ibv_pd* pd, void* context,
                 ibv_srq_type type);
// `pd` or `xrcd` is null where the type has none; `rss` is what spreads received frames, or null.
struct Rss {
  verbs::RwqTable* table;
  steering::HashRule hash;
};
ibv_qp* make_qp(ibv_context* context, ibv_pd* pd, verbs_xrcd* xrcd, ibv_qp_init_attr* initial,
                const Rss* rss = nullptr);

}  // namespace uroce::provider
