// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/group_sign.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>

namespace uroce::datapath::udp {
namespace {

std::string prefix_of(std::uint16_t port, uid_t user) {
  return "uroce/udp-" + std::to_string(port) + "/" + std::to_string(user) + "/";
}

std::string identity_of(const std::string& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return {};
  return std::to_string(status.st_dev) + "." + std::to_string(status.st_ino);
}

// What the user can choose is the directory in which the network namespace's folder lies.
std::string parent_of(const std::string& folder) { return folder.substr(0, folder.rfind('/')); }

// Without the zero in front; what does not fit is cut off.
posix::Descriptor bind_abstract(const std::string& name) {
  posix::Descriptor descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  if (bind(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return {};
  return descriptor;
}

std::string read_table() {
  std::ifstream file("/proc/thread-self/net/unix");
  return {std::istreambuf_iterator<char>(file), {}};
}

Error refusal(std::uint16_t port, const Sign& other, const std::string& own) {
  const std::string text = "UDP port " + std::to_string(port) + " is shared by processes (" +
                           other.process + " is one) that meet in " + other.runtime_directory +
                           ", and this one would meet its like in " + own +
                           ", so their packets would go astray; ";
  if (other.runtime_directory == own) {
    return {EADDRINUSE, text + "that is another file system's: give both the same " + own};
  }
  return {EADDRINUSE, text + "set UROCE_RUNTIME_DIR=" + other.runtime_directory +
                          " for this one, or end the others"};
}

}  // namespace

std::optional<Sign> find_other_sign(std::string_view table, std::uint16_t port, uid_t user,
                                    std::string_view folder) {
  const std::string prefix = std::string("@").append(prefix_of(port, user));
  for (std::size_t at = table.find(prefix); at != std::string_view::npos;
       at = table.find(prefix, at + 1)) {
    std::string_view rest = table.substr(at + prefix.size());
    rest = rest.substr(0, rest.find('\n'));
    const std::size_t identity = std::min(rest.find('/'), rest.size());
    const std::size_t process = std::min(rest.find('/', identity + 1), rest.size());
    if (process == rest.size() || rest.substr(0, identity) == folder) continue;
    const std::string_view member = rest.substr(identity + 1, process - identity - 1);
    return Sign{.folder = std::string(rest.substr(0, identity)),
                .process = std::string(member.substr(0, member.find('.'))),
                .runtime_directory = std::string(rest.substr(process))};
  }
  return std::nullopt;
}

// First ours, then the look: of two that come at once at least one sees the other. Where there are
// no such sockets, or no /proc, nobody can be warned, and everything else still works.
Result<posix::Descriptor> put_up_sign(const Directory& directory, std::uint16_t port) {
  const std::string folder = identity_of(directory.folder());
  const std::string runtime_directory = parent_of(directory.folder());
  posix::Descriptor sign =
      bind_abstract(prefix_of(port, geteuid()) + folder + "/" + std::to_string(getpid()) + "." +
                    std::to_string(directory.own_slot().index) + runtime_directory);
  const auto other = find_other_sign(read_table(), port, geteuid(), folder);
  if (other) return refusal(port, *other, runtime_directory);
  return sign;
}

}  // namespace uroce::datapath::udp
