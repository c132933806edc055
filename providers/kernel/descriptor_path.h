// SPDX-License-Identifier: BSD-2-Clause
// "/proc/self/fd/3" and the like without printf, which a signal handler may not call; and closing.
#pragma once

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace uroce::kernel {

inline constexpr std::size_t kDecimalBytesMax = 21;  // with the final 0

inline void write_decimal(std::uint64_t value, char* text) {
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
  write_decimal(static_cast<std::uint64_t>(descriptor), path + kDescriptorFolder.size());
}

inline void close_keeping_errno(int descriptor) {
  const int saved_errno = errno;
  close(descriptor);
  errno = saved_errno;
}

}  // namespace uroce::kernel
