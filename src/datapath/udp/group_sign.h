// SPDX-License-Identifier: BSD-2-Clause
// A sign that every member of a reuseport group puts up, for members of another group to see.
//
// The kernel lets all sockets of a user share a port, whichever folder their processes meet in (one
// was started with XDG_RUNTIME_DIR set, the other without). Two folders are two lists of members
// for one array of sockets, and the packets of both would go astray. So each member binds an
// abstract unix socket, which nobody sends to: its name is visible in the network namespace,
// belongs to nobody's mount namespace, and is gone with its process. The name is
//
//   uroce/udp-PORT/UID/DEVICE.INODE/PID.SLOT/run/user/1000/uroce
//
// where device and inode are those of the folder, and the rest is the runtime directory it lies in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "datapath/directory/directory.h"
#include "posix/descriptor.h"

namespace uroce::datapath::udp {

// Puts ours up, as long as the descriptor is open. An Error where processes of this user that meet
// elsewhere have theirs on the same port; it names the folder to use.
[[nodiscard]] Result<posix::Descriptor> put_up_sign(const Directory& directory, std::uint16_t port);

struct Sign {
  std::string folder;  // its device and inode
  std::string process;
  std::string runtime_directory;
};

// Of a user on a port: what /proc/net/unix, `table`, shows that is not of `folder`.
[[nodiscard]] std::optional<Sign> find_other_sign(std::string_view table, std::uint16_t port,
                                                  uid_t user, std::string_view folder);

}  // namespace uroce::datapath::udp
