// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/resolver.h"

#include <cerrno>

namespace uroce::datapath {

int Resolver::open_path(Path& path) {
  if (path.destination.is_multicast()) {
    path.route = kMulticastRoute;
    return 0;
  }
  Gid next_hop;
  if (const int error = find_next_hop(path, next_hop); error != 0) return error;
  const auto route = table_.want(next_hop);
  if (!route) return ENOBUFS;
  path.route = *route;
  on_open(*route);
  return 0;
}

void Resolver::close_path(const Path& path) {
  if (path.route < kMulticastRoute) table_.release(path.route);
}

bool Resolver::find(const Path& path, MacAddress& destination) const {
  if (path.route >= kMulticastRoute) {
    destination = multicast_mac_of(path.destination);
    return path.route == kMulticastRoute;
  }
  const MacAddress* known = table_.find(path.route);
  if (known == nullptr) return false;
  destination = *known;
  return true;
}

}  // namespace uroce::datapath
