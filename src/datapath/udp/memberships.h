// SPDX-License-Identifier: BSD-2-Clause
// Multicast groups that the host takes part in for us. Linux hands a group's datagrams to every
// socket on the port, whoever made the host join, so the joining is done by sockets of their own,
// one a group: one socket could join only as many as net.ipv4.igmp_max_memberships says.
#pragma once

#include <string>
#include <vector>

#include "posix/descriptor.h"
#include "uroce/ids.h"

namespace uroce::datapath::udp {

class Memberships {
 public:
  explicit Memberships(const std::string& interface);

  // 0 or an errno.
  [[nodiscard]] int join(const Gid& group);
  void leave(const Gid& group);
  void close_descriptors() { joined_.clear(); }

 private:
  struct Membership {
    Gid group;
    posix::Descriptor socket;
  };

  unsigned interface_index_;
  std::vector<Membership> joined_;
};

}  // namespace uroce::datapath::udp
