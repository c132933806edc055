// SPDX-License-Identifier: BSD-2-Clause
// One of the two calls on descriptors that are interposed (ioctl.cc has the other). A comparison or
// two for nearly every write; a write of a command's length in a process that has looked at a node
// costs one fstat more.
#include "interposed.h"
#include "node.h"
#include "rdma_cm.h"
#include "uverbs.h"

namespace uroce::kernel {

namespace {

[[gnu::noinline, gnu::cold]] ssize_t write_to_node(int descriptor, const void* buffer,
                                                   std::size_t bytes) {
  Stat status;
  const NodeKind* kind = find_command(descriptor, buffer, bytes, status);
  return kind != nullptr ? kind->execute(descriptor, status, buffer, bytes)
                         : next().write(descriptor, buffer, bytes);
}

bool may_be_command(std::size_t bytes) {
  if (!node_was_seen.load(std::memory_order_relaxed)) return false;
  return bytes == kUverbsCommandBytes || (bytes >= kRdmaCmCommandBytesMin &&
                                          bytes <= kRdmaCmCommandBytesMax && rdma_cm_was_opened());
}

}  // namespace

UROCE_INTERPOSE(write, ssize_t, (int descriptor, const void* buffer, size_t bytes)) {
  if (may_be_command(bytes)) [[unlikely]] {
    return write_to_node(descriptor, buffer, bytes);
  }
  return next().write(descriptor, buffer, bytes);
}

}  // namespace uroce::kernel
