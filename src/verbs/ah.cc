// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/ah.h"

#include <cerrno>
#include <memory>
#include <new>

#include "uroce/ids.h"
#include "verbs/failed.h"
#include "verbs/translate.h"
#include "wire/management.h"

namespace uroce::verbs {
namespace {

using engine::Engine;

AhPath* find(const Ah& ah, std::uint32_t block) {
  AhPath* path = ah.opened.load(std::memory_order_acquire);
  while (path != nullptr && path->block != block) path = path->next;
  return path;
}

// Under the shard's lock, so no two threads open a path to one block.
// `spare` is used up where the path is new.
transport::AddressPath* open(Ah& ah, Qpn destination, std::unique_ptr<AhPath>& spare) {
  Engine::Section section(ah.domain.context.engine());
  if (AhPath* other = find(ah, spare->block); other != nullptr) return &other->core;
  if (section.open_path(spare->core.path, destination, spare->core.link) != 0) return nullptr;
  spare->next = ah.opened.load(std::memory_order_relaxed);
  ah.opened.store(spare.get(), std::memory_order_release);
  return &spare.release()->core;
}

}  // namespace

Ah* create_ah(Pd& pd, const ibv_ah_attr& attributes) {
  Engine& engine = pd.context.engine();
  if (engine.is_abandoned()) return failed(EIO);
  Path path;
  if (const int e = to_path(engine.port(), Qpn{}, Qpn{}, attributes, path); e != 0) {
    return failed(e);
  }
  pd.context.unused_paths().sweep(engine);
  std::unique_ptr<Ah> ah(new (std::nothrow) Ah(pd, path));
  if (ah == nullptr || !engine.quotas().ah.take()) return failed(ENOMEM);
  pd.users.fetch_add(1, std::memory_order_acq_rel);
  ah->begin();
  return ah.release();
}

void Ah::leave_device() {
  Engine& engine = domain.context.engine();
  UnusedPaths& unused = domain.context.unused_paths();
  unused.add(opened.exchange(nullptr, std::memory_order_acq_rel));
  unused.sweep(engine);
  engine.quotas().ah.give_back();
}

void destroy_ah(Ah* ah) {
  ah->end();
  ah->domain.users.fetch_sub(1, std::memory_order_acq_rel);
  delete ah;
}

transport::AddressPath* path_to(Ah& ah, Qpn destination) {
  if (destination == wire::kManagementQpn) [[unlikely]] {
    destination = Qpn{ah.management_block * kQpnsPerBlock};
  }
  const std::uint32_t block = qpn_block(destination);
  if (AhPath* path = find(ah, block); path != nullptr) [[likely]] {
    return &path->core;
  }
  if (ah.domain.context.engine().is_abandoned()) return nullptr;
  std::unique_ptr<AhPath> spare(new (std::nothrow) AhPath);
  if (spare == nullptr) return nullptr;
  spare->core.path = ah.path;
  spare->block = block;
  return open(ah, destination, spare);
}

}  // namespace uroce::verbs
