// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/stale_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "posix/descriptor.h"

namespace uroce::datapath {
namespace {

bool listens_on_a_file(const PortSpec& spec) {
  const std::string_view role = spec.argument("role");
  return spec.facts->driver == "net_memif" && (role == "server" || role == "master") &&
         spec.argument("socket-abstract") == "no";
}

// A socket that some process has, of memif's or any other type, refuses a datagram socket for its
// type and does not notice. Only where none has it the connection itself is refused.
bool is_stale(const std::string& path) {
  struct stat facts {};
  sockaddr_un address{};
  if (lstat(path.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return false;
  if (path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  const posix::Descriptor asking(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return asking.is_open() &&
         connect(asking.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

void remove_stale_socket(const PortSpec& spec) {
  if (!listens_on_a_file(spec)) return;
  const std::string path(spec.argument("socket"));
  if (is_stale(path)) unlink(path.c_str());
}

}  // namespace uroce::datapath
