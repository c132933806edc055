// SPDX-License-Identifier: BSD-2-Clause
// The memory of one ring: a memfd that can neither shrink nor grow, every page allocated when it is
// made, so that no access can end in SIGBUS. It needs no room in /dev/shm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "datapath/shm/record.h"
#include "posix/descriptor.h"

namespace uroce::datapath::shm {

class RingMemory {
 public:
  RingMemory() = default;
  RingMemory(RingMemory&& other) noexcept { swap(other); }
  RingMemory& operator=(RingMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~RingMemory();

  // `data_bytes` is a power of two.
  static Result<RingMemory> make(std::uint32_t data_bytes);
  // Of a descriptor that a peer sent, which is taken over also on failure. An Error where it is not
  // what `make` makes.
  static Result<RingMemory> adopt(int descriptor, std::uint32_t data_bytes);

  [[nodiscard]] RingControl& control() const { return *static_cast<RingControl*>(mapped_); }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(mapped_) + kControlBytes; }
  [[nodiscard]] std::uint32_t data_bytes() const { return data_bytes_; }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  // The mapping stays.
  void close_descriptor() { descriptor_.close(); }

 private:
  void swap(RingMemory& other) {
    std::swap(mapped_, other.mapped_);
    std::swap(data_bytes_, other.data_bytes_);
    std::swap(descriptor_, other.descriptor_);
  }
  [[nodiscard]] bool map();

  void* mapped_ = nullptr;
  std::uint32_t data_bytes_ = 0;
  posix::Descriptor descriptor_;
};

}  // namespace uroce::datapath::shm
