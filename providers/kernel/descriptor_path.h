// SPDX-License-Identifier: BSD-2-Clause
// "/proc/self/fd/3" and the like without printf, which a signal handler may not call.
#pragma once

#include <string.h>

#include <cstddef>
#include <string_view>

namespace uroce::kernel {

inline constexpr std::size_t kDecimalBytesMax = 11;  // with the final 0

inline void write_decimal(unsigned value, char* text) {
  char digits[kDecimalBytesMax];
  std::size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) *text++ = digits[--count];
  *text = '\0';
}

inline constexpr std::string_view kDescriptorFolder = "/proc/self/fd/";
inline constexpr std::size_t kDescriptorPathBytes = kDescriptorFolder.size() + kDecimalBytesMax;

inline void write_descriptor_path(int descriptor, char (&path)[kDescriptorPathBytes]) {
  memcpy(path, kDescriptorFolder.data(), kDescriptorFolder.size());
  write_decimal(static_cast<unsigned>(descriptor), path + kDescriptorFolder.size());
}

}  // namespace uroce::kernel
