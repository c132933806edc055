// SPDX-License-Identifier: BSD-2-Clause
// What a descriptor of a device stands for in ibv_import_device and its kin: the objects made
// through it, by their handles. The kernel keeps this for each open of the device; here it is
// shared by the context that opened the device and those that imported it. Regions need no entry:
// their handles are their keys.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

namespace uroce::verbs {

// Of ibv_alloc_dm: there as long as a handle of it, or a region in it.
struct DeviceMemory {
  DeviceMemory(std::byte* allocated, std::uint32_t size) : bytes(allocated), length(size) {}
  ~DeviceMemory() { std::free(bytes); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* bytes;  // of aligned_alloc
  std::uint32_t length;
  std::atomic<std::uint32_t> users{0};  // regions
};

// How many objects use a protection domain, through whichever handle of it they were made.
using DomainUsers = std::atomic<std::uint32_t>;

struct Handles {
  std::mutex mutex;
  std::map<std::uint32_t, std::shared_ptr<DomainUsers>> pds;
  std::map<std::uint32_t, std::shared_ptr<DeviceMemory>> dms;
  std::uint32_t last_dm = 0;
};

}  // namespace uroce::verbs
