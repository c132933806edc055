// SPDX-License-Identifier: BSD-2-Clause
// A port's counters in sysfs: made when they are opened, as the sum of what all engines of the port
// have counted until then (host/port_counters.h says of what). What the program gets is a file in
// memory that nobody else has, so that it says the same however slowly it is read.
#pragma once

#include <string.h>

#include <cstddef>
#include <string_view>

#include "descriptor_path.h"
#include "tree.h"

namespace uroce::kernel {

// A look at the text alone. Also of a relative name without a folder's: `cd .../hw_counters` is
// common, and then a file is opened by its last name.
bool may_be_counter(const char* path);

// A descriptor of the counter as it is now, at its beginning and close-on-exec, or -1 where that is
// none of ours. Keeps errno.
int make_counter(int folder, const char* path);

// As open(path, flags). False: it is no counter of ours, or more is asked than to read it.
bool open_counter(int folder, const char* path, int flags, int& descriptor);

// For calls that take a path and do not refuse links, as those do that make a stream: call(path),
// with the counter in its place.
template <typename Call>
auto open_as_stream(const char* path, Call call) {
  if (may_be_counter(path)) [[unlikely]] {
    if (const int counter = make_counter(AT_FDCWD, path); counter >= 0) {
      char place[kDescriptorPathBytes];
      write_descriptor_path(counter, place);
      const auto stream = call(place);
      close_keeping_errno(counter);
      return stream;
    }
  }
  return redirect(path, call);
}

}  // namespace uroce::kernel
