// SPDX-License-Identifier: BSD-2-Clause
// A protection domain: an identity, and how many objects use it (man ibv_dealloc_pd: EBUSY). A
// parent domain has the identity of the one that it was made of, so that their objects mix, and may
// bring an allocator for the rings of what is made in it.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/ids.h"
#include "verbs/context.h"
#include "verbs/td.h"

namespace uroce::verbs {

// The application's, and what it wants to be told of itself.
struct Allocator {
  void* (*alloc)(ibv_pd*, void*, std::size_t, std::size_t, std::uint64_t) = nullptr;
  void (*free)(ibv_pd*, void*, void*, std::uint64_t) = nullptr;
  ibv_pd* handle = nullptr;
  void* user_data = nullptr;
};

struct Pd {
  Context& context;
  PdId id;                         // its handle too
  std::shared_ptr<Domain> domain;  // with those that were imported from it
  std::atomic<std::uint32_t>& users = domain->users;
  // Of a parent domain.
  Pd* made_of = nullptr;
  Td* td = nullptr;
  Allocator allocator{};
};

// Null, and errno.
[[nodiscard]] Pd* alloc_pd(Context& context);
// Null, and errno. `handle` is what the allocator of `attributes`, if it has one, will be given.
[[nodiscard]] Pd* alloc_parent_domain(Context& context, ibv_pd& handle, Pd* made_of, Td* td,
                                      const ibv_parent_domain_init_attr& attributes);
// 0, or EBUSY.
[[nodiscard]] int dealloc_pd(Pd* pd);

// The domain again, for another context of the same descriptor: one domain, with one count of who
// uses it. Null, and errno: ENOENT.
[[nodiscard]] Pd* import_pd(Context& context, std::uint32_t handle);
// Without an end of the domain. No object that was made in it is used any more.
void unimport_pd(Pd* pd);

}  // namespace uroce::verbs
