// SPDX-License-Identifier: BSD-2-Clause
// Copying a payload into a ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uroce::datapath::shm {

inline void copy_payload(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

}  // namespace uroce::datapath::shm
