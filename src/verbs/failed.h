// SPDX-License-Identifier: BSD-2-Clause
// How a verb says why it could not. What makes an object: null, and errno.
//
//   if (attributes.length == 0) return failed(EINVAL);
//
// The others return the reason, and it is in errno too, where a kernel driver's system calls leave
// it: programs call perror() after both. Not so posting and polling, which make no such call.
//
//   return told(verbs::resize_cq(*object_of(cq), entries));
#pragma once

#include <cerrno>

namespace uroce::verbs {

struct Failed {
  template <typename Object>
  operator Object*() const {  // NOLINT: it is returned as a pointer to whatever was to be made
    return nullptr;
  }
};
inline Failed failed(int error) {
  errno = error;
  return {};
}

inline int told(int error) {
  if (error != 0) errno = error;
  return error;
}

}  // namespace uroce::verbs
