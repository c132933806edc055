// SPDX-License-Identifier: BSD-2-Clause
// The plug-in: registers itself when libibverbs loads it, recognises our devices by their names,
// opens them.
#include <cerrno>

#include "objects.h"

namespace uroce::provider {
namespace {

// Not in rdma-core's list of drivers: nobody answers to it.
constexpr std::uint32_t kDriverUnknown = 0;

verbs_device* alloc_device(verbs_sysfs_dev* /*found*/) {
  auto holder = allocate<DeviceHolder>();
  return holder == nullptr ? nullptr : &holder.release()->base;
}

void uninit_device(verbs_device* device) { std::free(reinterpret_cast<DeviceHolder*>(device)); }

}  // namespace

ContextHolder* make_context(ibv_device* device, int cmd_fd) {
  auto* const context_offset = reinterpret_cast<verbs_context*>(offsetof(ContextHolder, base));
  return static_cast<ContextHolder*>(_verbs_init_and_alloc_context(
      device, cmd_fd, sizeof(ContextHolder), context_offset, kDriverUnknown));
}

verbs_context* publish(ContextHolder* holder) {
  if (holder->object == nullptr) {
    const int error = errno;
    verbs_uninit_context(&holder->base);
    std::free(holder);
    errno = error;
    return nullptr;
  }
  holder->base.context.num_comp_vectors = verbs::kCompletionVectors;
  verbs_set_ops(&holder->base, &kContextOps);
  remember(*holder);
  return &holder->base;
}

namespace {

verbs_context* alloc_context(ibv_device* device, int cmd_fd, void* /*private_data*/) {
  ContextHolder* const holder = make_context(device, cmd_fd);
  if (holder == nullptr) return nullptr;
  holder->object = verbs::Context::open(device->name);
  // Else libibverbs would ask the kernel for one.
  if (holder->object != nullptr) {
    holder->base.context.async_fd = holder->object->async_descriptor();
  }
  return publish(holder);
}

constexpr verbs_match_ent kMatches[] = {
    {.driver_data = nullptr,
     .u = {.modalias = "rdma_device:*Nuroce*"},
     .vendor = 0,
     .device = 0,
     .kind = VERBS_MATCH_MODALIAS},
    {.driver_data = nullptr,
     .u = {.modalias = nullptr},
     .vendor = 0,
     .device = 0,
     .kind = VERBS_MATCH_SENTINEL},
};

const verbs_device_ops kDeviceOps = {.name = "uroce",
                                     .match_min_abi_version = 0,
                                     .match_max_abi_version = INT32_MAX,
                                     .match_table = kMatches,
                                     .static_providers = nullptr,
                                     .match_device = nullptr,
                                     .alloc_context = alloc_context,
                                     .import_context = import_context,
                                     .alloc_device = alloc_device,
                                     .uninit_device = uninit_device};

[[gnu::constructor]] void register_driver() { verbs_register_driver_34(&kDeviceOps); }

}  // namespace
}  // namespace uroce::provider
