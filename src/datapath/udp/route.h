// SPDX-License-Identifier: BSD-2-Clause
// Where a path leads, resolved once: the socket address, the ancillary data that pins the source
// address, and the sending socket whose port the flow uses. `Path::route` is the index in here.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "datapath/udp/options.h"
#include "datapath/udp/sockets.h"
#include "uroce/packet.h"
#include "wire/icrc.h"

namespace uroce::datapath::udp {

struct Route {
  sockaddr_storage destination{};
  socklen_t destination_bytes = 0;
  int socket = -1;
  std::size_t segments_max = 1;  // of one send; 1 once the device will not cut
  bool is_doubted = false;       // whether it is the device, or the address is not there just now
  bool in_use = false;
  std::size_t control_bytes = 0;
  alignas(cmsghdr) std::array<std::byte, 128> control{};
  wire::IcrcFlow flow;
};

class RouteTable {
 public:
  explicit RouteTable(const UdpOptions& options);

  // 0 and `path.route`, or an errno.
  int open(Path& path);
  void close(const Path& path);
  [[nodiscard]] Route& operator[](std::uint32_t index) { return routes_[index]; }
  [[nodiscard]] bool is_open(std::uint32_t index) const {
    return index < routes_.size() && routes_[index].in_use;
  }
  void close_descriptors();
  [[nodiscard]] std::size_t segments_max(sa_family_t family) const {
    return family == AF_INET ? segments_max_ipv4_ : segments_max_ipv6_;
  }

 private:
  using Pool = std::vector<SendingSocket>;
  int open_pool(sa_family_t family);
  std::uint32_t take_index();

  UdpOptions options_;
  unsigned interface_index_;
  std::size_t segments_max_ipv4_, segments_max_ipv6_;
  Pool ipv4_, ipv6_;  // opened when the first path of the family is
  std::vector<Route> routes_;
};

}  // namespace uroce::datapath::udp
