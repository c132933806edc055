// SPDX-License-Identifier: BSD-2-Clause
// The one call on descriptors that is interposed. Two comparisons for nearly every write; a write
// of a command's length in a process that has looked at a node costs one fstat more.
#include "interposed.h"
#include "node.h"
#include "uverbs.h"

namespace uroce::kernel {

namespace {

[[gnu::noinline, gnu::cold]] ssize_t write_to_node(int descriptor, const void* buffer,
                                                   std::size_t bytes) {
  const NodeKind* kind = find_command(descriptor, buffer, bytes);
  return kind != nullptr ? kind->execute(buffer, bytes) : next().write(descriptor, buffer, bytes);
}

}  // namespace

UROCE_INTERPOSE(write, ssize_t, (int descriptor, const void* buffer, size_t bytes)) {
  if (bytes >= kCommandBytesMin && bytes <= kCommandBytesMax &&
      node_was_seen.load(std::memory_order_relaxed)) [[unlikely]] {
    return write_to_node(descriptor, buffer, bytes);
  }
  return next().write(descriptor, buffer, bytes);
}

}  // namespace uroce::kernel
