// SPDX-License-Identifier: BSD-2-Clause
// Memory on demand (IBV_ACCESS_ON_DEMAND) may be mapped after it was registered, and unmapped while
// it is. So whether it is there is asked each time it is used, of whoever knows the address space.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uroce::memory {

class Pager {
 public:
  // The bytes can be read, or written, without a fault now. May wait for the disk; allocates
  // nothing. `length` is not 0, and the range may wrap or be nobody's.
  [[nodiscard]] virtual bool bring_in(std::byte* at, std::uint64_t length, bool writes) const = 0;

 protected:
  ~Pager() = default;
};

}  // namespace uroce::memory
