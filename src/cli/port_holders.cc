// SPDX-License-Identifier: BSD-2-Clause
#include "cli/port_holders.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string>

#include "cli/installation.h"
#include "host/files.h"
#include "host/udp_port.h"

namespace uroce::cli {
namespace {

std::string link_target(const std::string& path) {
  std::array<char, 256> target{};
  const ssize_t n = readlink(path.c_str(), target.data(), target.size());
  return n <= 0 ? std::string{} : std::string(target.data(), static_cast<std::size_t>(n));
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool has_socket(const std::string& process, std::uint64_t inode) {
  const std::string wanted = "socket:[" + std::to_string(inode) + "]";
  const std::string directory = "/proc/" + process + "/fd";
  return std::ranges::any_of(host::list_directory(directory), [&](const std::string& fd) {
    return link_target(directory + "/" + fd) == wanted;
  });
}

bool has_provider(const std::string& process) {
  const std::string maps = host::read_file("/proc/" + process + "/maps").value_or("");
  return maps.find(provider_file()) != std::string::npos;
}

bool name_process(const UdpSocket& socket, PortHolder& holder) {
  for (const std::string& process : host::list_directory("/proc")) {
    if (!is_number(process) || !has_socket(process, socket.inode)) continue;
    std::from_chars(process.data(), process.data() + process.size(), holder.process);
    holder.program = host::read_line("/proc/" + process + "/comm");
    return true;
  }
  return false;
}

}  // namespace

std::vector<UdpSocket> sockets_on_port(std::string_view table, std::uint16_t port) {
  std::vector<UdpSocket> sockets;
  std::istringstream lines{std::string(table)};
  std::string line;
  std::getline(lines, line);  // the heading
  while (std::getline(lines, line)) {
    // slot, local address:port, remote, state, queues, timer, retransmits, user, time-out, inode
    std::istringstream columns(line);
    std::string slot, local, skipped;
    UdpSocket socket;
    columns >> slot >> local;
    for (int i = 0; i < 5; ++i) columns >> skipped;
    if (!(columns >> socket.user >> skipped >> socket.inode)) continue;
    std::uint16_t local_port = 0;
    const std::size_t colon = local.find(':');
    if (colon == std::string::npos) continue;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), local_port, 16);
    if (local_port == port) sockets.push_back(socket);
  }
  return sockets;
}

std::vector<PortHolder> find_port_holders(std::uint16_t port) {
  std::vector<PortHolder> holders;
  for (const char* path : {"/proc/net/udp", "/proc/net/udp6"}) {
    for (const UdpSocket& socket : sockets_on_port(host::read_file(path).value_or(""), port)) {
      PortHolder holder;
      holder.user = socket.user;
      holder.shares = name_process(socket, holder) ? has_provider(std::to_string(holder.process))
                                                   : host::is_udp_port_shared(port);
      const bool known = std::ranges::any_of(holders, [&](const PortHolder& other) {
        return other.user == holder.user && other.process == holder.process;
      });
      if (!known) holders.push_back(std::move(holder));
    }
  }
  return holders;
}

}  // namespace uroce::cli
