// SPDX-License-Identifier: BSD-2-Clause
// Keys and handles that never leave their kind: an LKey cannot be resolved as an RKey.
#pragma once

#include <cstdint>

#include "uroce/ids.h"

namespace uroce {

struct LKey {
  std::uint32_t value = 0;
  friend constexpr bool operator==(LKey, LKey) = default;
};
struct RKey {
  std::uint32_t value = 0;
  friend constexpr bool operator==(RKey, RKey) = default;
};
struct PKey {
  std::uint16_t value = 0xffff;
  friend constexpr bool operator==(PKey, PKey) = default;
};
struct QKey {
  std::uint32_t value = 0;
  friend constexpr bool operator==(QKey, QKey) = default;
};
// Message sequence number: 24 bits.
struct Msn {
  std::uint32_t value = 0;
  friend constexpr bool operator==(Msn, Msn) = default;
};
// A domain of extended reliable connections (XRC), of one process; 0 is none.
struct XrcdId {
  std::uint32_t value = 0;
  friend constexpr bool operator==(XrcdId, XrcdId) = default;
};
// A protection domain; 0 is none.
struct PdId {
  std::uint32_t value = 0;
  friend constexpr bool operator==(PdId, PdId) = default;
};

}  // namespace uroce
