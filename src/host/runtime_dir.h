// SPDX-License-Identifier: BSD-2-Clause
// Where the processes of one user on one host meet:
//
//   $UROCE_RUNTIME_DIR, else $XDG_RUNTIME_DIR/uroce, else /run/user/<uid>/uroce, else
//   /tmp/uroce-<uid>
//     netns-<inode>/             one for each network namespace: what is behind it cannot be
//       trees.lock               reached from another; gone when unused (unused_trees.h)
//       tree-<hash>/             device trees (device_tree.h)
//       ...                      the shared-memory datapath's own
//
// Mode 0700 and ours, checked without following a symbolic link: whoever else could write here
// could put packets into our memory. $XDG_RUNTIME_DIR is used only if it belongs to us, because
// sudo keeps that of its caller. /run/user/<uid> is what it says where there is a login, so that
// programs that were started without it (by cron, by su) meet the others; those that must not
// share a port and still do not meet are refused (datapath/udp/group_sign.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "host/environment.h"

namespace uroce::host {

struct RuntimeDirectory {
  std::string path;
  std::string network_path;  // <path>/netns-<inode>
};

[[nodiscard]] Result<RuntimeDirectory> open_runtime_directory(const Environment& environment,
                                                              std::uint64_t network_namespace);

}  // namespace uroce::host
