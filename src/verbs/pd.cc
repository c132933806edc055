// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/pd.h"

#include <cerrno>
#include <mutex>
#include <new>

#include "verbs/failed.h"

namespace uroce::verbs {

namespace {

// One more of them.
Pd* make(Context& context, PdId id) {
  if (!context.engine().quotas().pd.take()) return failed(ENOMEM);
  Pd* const pd = new (std::nothrow) Pd{context, id, std::make_shared<Domain>(context)};
  if (pd != nullptr) {
    pd->domain->begin();
    return pd;
  }
  context.engine().quotas().pd.give_back();
  return failed(ENOMEM);
}

}  // namespace

Pd* alloc_pd(Context& context) {
  if (context.engine().is_abandoned()) return failed(EIO);
  Pd* const pd = make(context, context.engine().new_pd());
  if (pd == nullptr) return nullptr;
  Handles& handles = context.handles();
  const std::lock_guard guard(handles.mutex);
  handles.pds.emplace(pd->id.value, pd->domain);
  return pd;
}

Pd* import_pd(Context& context, std::uint32_t handle) {
  if (context.engine().is_abandoned()) return failed(EIO);
  Handles& handles = context.handles();
  const std::lock_guard guard(handles.mutex);
  const auto found = handles.pds.find(handle);
  if (found == handles.pds.end()) return failed(ENOENT);
  Pd* const pd = new (std::nothrow) Pd{context, {handle}, found->second};
  return pd != nullptr ? pd : failed(ENOMEM);
}

void unimport_pd(Pd* pd) { delete pd; }

Pd* alloc_parent_domain(Context& context, ibv_pd& handle, Pd* made_of, Td* td,
                        const ibv_parent_domain_init_attr& attributes) {
  constexpr std::uint32_t kKnown =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if (context.engine().is_abandoned()) return failed(EIO);
  const bool is_ours = made_of != nullptr && &made_of->context == &context;
  if ((attributes.comp_mask & ~kKnown) != 0 || !is_ours) return failed(EINVAL);
  if (td != nullptr && &td->context != &context) return failed(EINVAL);
  const bool allocates = (attributes.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0;
  if (allocates && (attributes.alloc == nullptr || attributes.free == nullptr)) {
    return failed(EINVAL);
  }
  Pd* const pd = make(context, made_of->id);
  if (pd == nullptr) return nullptr;
  const bool has_data = (attributes.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0;
  if (allocates) {
    pd->allocator = {attributes.alloc, attributes.free, &handle,
                     has_data ? attributes.pd_context : nullptr};
  }
  pd->made_of = made_of;
  pd->td = td;
  made_of->users.fetch_add(1, std::memory_order_relaxed);
  if (td != nullptr) td->users.fetch_add(1, std::memory_order_relaxed);
  return pd;
}

void Domain::leave_device() { context.engine().quotas().pd.give_back(); }

int dealloc_pd(Pd* pd) {
  if (pd->users.load(std::memory_order_acquire) != 0) return EBUSY;
  if (pd->made_of != nullptr) {
    pd->made_of->users.fetch_sub(1, std::memory_order_release);
  } else if (pd->domain->is_live()) {
    Handles& handles = pd->context.handles();
    const std::lock_guard guard(handles.mutex);
    handles.pds.erase(pd->id.value);
  }
  if (pd->td != nullptr) pd->td->users.fetch_sub(1, std::memory_order_release);
  pd->domain->end();
  delete pd;
  return 0;
}

}  // namespace uroce::verbs
