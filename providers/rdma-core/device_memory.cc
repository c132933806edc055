// SPDX-License-Identifier: BSD-2-Clause
// Device memory: the functions that libibverbs calls through the object itself, and the operations.
#include <cerrno>

#include "objects.h"

namespace uroce::provider {
namespace {

int memcpy_to_dm(ibv_dm* dm, std::uint64_t offset, const void* from, std::size_t length) {
  return verbs::copy_to_dm(*object_of(dm), offset, from, length);
}
int memcpy_from_dm(void* to, ibv_dm* dm, std::uint64_t offset, std::size_t length) {
  return verbs::copy_from_dm(to, *object_of(dm), offset, length);
}

// `dm` as the application sees it; null without memory.
std::unique_ptr<DmHolder, Free> make_holder(ibv_context* context, verbs::Dm& object) {
  auto holder = allocate<DmHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = &object;
  ibv_dm& dm = holder->base.dm;
  dm.context = context;
  dm.memcpy_to_dm = memcpy_to_dm;
  dm.memcpy_from_dm = memcpy_from_dm;
  dm.handle = holder->base.handle = object.handle;
  return holder;
}

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attributes) {
  verbs::Dm* const dm = verbs::alloc_dm(*object_of(context), *attributes);
  if (dm == nullptr) return nullptr;
  auto holder = make_holder(context, *dm);
  if (holder == nullptr) static_cast<void>(verbs::free_dm(dm));  // nothing can lie in it yet
  return holder == nullptr ? nullptr : &holder.release()->base.dm;
}

ibv_dm* import_dm(ibv_context* context, std::uint32_t handle) {
  verbs::Dm* const dm = verbs::import_dm(*object_of(context), handle);
  if (dm == nullptr) return nullptr;
  auto holder = make_holder(context, *dm);
  if (holder == nullptr) verbs::unimport_dm(dm);
  return holder == nullptr ? nullptr : &holder.release()->base.dm;
}

void unimport_dm(ibv_dm* dm) {
  verbs::unimport_dm(object_of(dm));
  std::free(&holder_of(dm));
}

int free_dm(ibv_dm* dm) {
  if (const int error = verbs::free_dm(object_of(dm)); error != 0) return told(error);
  std::free(&holder_of(dm));
  return 0;
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access) {
  verbs::Mr* const mr = verbs::reg_dm_mr(*object_of(pd), *object_of(dm), offset, length, access);
  // It has no address.
  return publish(pd, mr, nullptr, length, static_cast<int>(access));
}

}  // namespace

void add_device_memory_ops(verbs_context_ops& ops) {
  ops.import_dm = import_dm;
  ops.unimport_dm = unimport_dm;
  ops.alloc_dm = alloc_dm;
  ops.free_dm = free_dm;
  ops.reg_dm_mr = reg_dm_mr;
}

}  // namespace uroce::provider
