// SPDX-License-Identifier: BSD-2-Clause
#include "engine/key_source.h"

#include <sys/random.h>

#include <mutex>
#include <utility>

#include "posix/uncancelled.h"

namespace uroce::engine {

std::uint32_t KeySource::next() {
  const std::lock_guard guard(lock_);
  for (int attempt = 0; attempt < 8; ++attempt) {
    if (left_ == 0) {
      const posix::Uncancelled whole;
      // Up to 256 bytes come whole or not at all.
      if (getrandom(keys_.data(), sizeof(keys_), 0) != static_cast<ssize_t>(sizeof(keys_))) {
        continue;
      }
      left_ = keys_.size();
    }
    // A key is forgotten here once it is given out. 0 would read as "none".
    const std::uint32_t key = std::exchange(keys_[--left_], 0);
    if (key != 0) return key;
  }
  return 0;
}

}  // namespace uroce::engine
