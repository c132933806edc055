// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/port_owner.h"

#include <dirent.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace uroce::datapath::udp {
namespace {

struct Socket {
  unsigned uid = 0;
  std::uint64_t inode = 0;
};

// A line of /proc/net/udp{,6}: "sl: local:port remote:port st tx:rx tr:when retrnsmt uid timeout
// inode ...".
std::optional<Socket> parse_line(const std::string& line, std::uint16_t port) {
  std::istringstream fields(line);
  std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
  fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
      inode;
  const std::size_t colon = local.rfind(':');
  if (!fields || colon == std::string::npos) return std::nullopt;
  if (std::strtoul(local.c_str() + colon + 1, nullptr, 16) != port) return std::nullopt;
  return Socket{static_cast<unsigned>(std::strtoul(uid.c_str(), nullptr, 10)),
                std::strtoull(inode.c_str(), nullptr, 10)};
}

std::optional<Socket> find_socket(std::uint16_t port) {
  for (const char* table : {"/proc/net/udp", "/proc/net/udp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      if (const auto socket = parse_line(line, port)) return socket;
    }
  }
  return std::nullopt;
}

bool holds_socket(const std::filesystem::path& process, const std::string& wanted) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(process / "fd", ignored)) {
    if (std::filesystem::read_symlink(entry.path(), ignored) == wanted) return true;
  }
  return false;
}

// Sees the descriptors of own processes only, unless root.
std::string find_process(std::uint64_t inode) {
  const std::string wanted = "socket:[" + std::to_string(inode) + "]";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!holds_socket(entry.path(), wanted)) continue;
    std::string command;
    std::getline(std::ifstream(entry.path() / "comm"), command);
    return "pid " + pid + " (" + command + ")";
  }
  return {};
}

std::string user_name(unsigned uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 1024> buffer{};
  getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::string() : " (" + std::string(found->pw_name) + ")";
}

}  // namespace

std::optional<PortHolder> find_port_holder(std::uint16_t port) {
  const auto socket = find_socket(port);
  if (!socket) return std::nullopt;
  return PortHolder{socket->uid, find_process(socket->inode)};
}

std::string explain_holder(const PortHolder& holder, unsigned own_uid) {
  std::string text = "uid " + std::to_string(holder.uid) + user_name(holder.uid);
  if (!holder.process.empty()) {
    text += ", " + holder.process;
  } else if (holder.uid == 0) {
    // The kernel's sockets look like those of a process of root that is not ours to see.
    text += " or the kernel itself (rxe, a tunnel)";
  }
  if (holder.uid == own_uid) {
    return text +
           ", which does not share it, so it is no program of uroce: end it, or use "
           "--uplink none";
  }
  return text + "; only processes of one user can share it (this one is uid " +
         std::to_string(own_uid) + "): end it, run as that user, or use --uplink none";
}

std::string explain_bind_failure(std::uint16_t port, int error) {
  const std::string text = "cannot bind UDP port " + std::to_string(port) + ": ";
  if (error != EADDRINUSE) return text + std::strerror(error);
  const auto holder = find_port_holder(port);
  if (!holder) return text + "another socket had it a moment ago; try again";
  return text + "it belongs to " + explain_holder(*holder, geteuid());
}

}  // namespace uroce::datapath::udp
