// SPDX-License-Identifier: BSD-2-Clause
// "/proc/self/fd/N" without printf, which a signal handler may not call.
#pragma once

#include <string.h>

#include <cstddef>
#include <string_view>

namespace uroce::kernel {

inline constexpr std::string_view kDescriptorFolder = "/proc/self/fd/";
inline constexpr std::size_t kDescriptorPathBytes = kDescriptorFolder.size() + 11;

inline void write_descriptor_path(int descriptor, char (&path)[kDescriptorPathBytes]) {
  char digits[10];
  std::size_t count = 0;
  unsigned value = static_cast<unsigned>(descriptor);
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  memcpy(path, kDescriptorFolder.data(), kDescriptorFolder.size());
  char* end = path + kDescriptorFolder.size();
  while (count > 0) *end++ = digits[--count];
  *end = '\0';
}

}  // namespace uroce::kernel
