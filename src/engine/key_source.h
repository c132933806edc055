// SPDX-License-Identifier: BSD-2-Clause
// Keys of memory regions: 32 bits from the kernel's CSPRNG, because who guesses an R_Key may write
// to the memory behind it. Any thread may call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/spin_lock.h"

namespace uroce::engine {

class KeySource {
 public:
  // 0 when the kernel gives no random numbers, which no key ever is.
  [[nodiscard]] std::uint32_t next();

 private:
  SpinLock lock_;
  std::array<std::uint32_t, 64> keys_{};
  std::size_t left_ = 0;
};

}  // namespace uroce::engine
