// SPDX-License-Identifier: BSD-2-Clause
// What a descriptor of a device stands for in ibv_import_device and its kin: the objects made
// through it, by their handles. The kernel keeps this for each open of the device; here it is
// shared by the context that opened the device and those that imported it, and what is left of it
// ends with the last of them. Regions need no entry: their handles are their keys.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "verbs/made.h"

namespace uroce::verbs {

struct Mr;

// Of ibv_alloc_dm: there as long as a handle of it, or a region in it.
struct DeviceMemory final : Made {
  DeviceMemory(Context& maker, std::byte* allocated, std::uint32_t size)
      : Made(Kind::kDm, maker), bytes(allocated), length(size) {}
  ~DeviceMemory() { std::free(bytes); }

  std::byte* bytes;  // of aligned_alloc
  std::uint32_t length;
  std::atomic<std::uint32_t> users{0};  // regions

 private:
  void leave_device() override;
};

// What all handles of a protection domain stand for.
struct Domain final : Made {
  explicit Domain(Context& maker) : Made(Kind::kPd, maker) {}

  std::atomic<std::uint32_t> users{0};  // objects, through whichever handle they were made

 private:
  void leave_device() override;
};

struct Handles {
  std::mutex mutex;
  std::map<std::uint32_t, std::shared_ptr<Domain>> pds;
  std::map<std::uint32_t, std::shared_ptr<DeviceMemory>> dms;
  std::uint32_t last_dm = 0;
  std::vector<std::shared_ptr<Mr>> unimported;  // regions that live without their maker's handle
  std::uint32_t open_contexts = 1;
  Context* closed = nullptr;  // what was made through these goes on until the last is closed
  Inventory inventory;        // has a lock of its own
};

}  // namespace uroce::verbs
