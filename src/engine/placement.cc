// SPDX-License-Identifier: BSD-2-Clause
#include "engine/placement.h"

#include <cerrno>

namespace uroce::engine {
namespace {

int open_to_group(const Links& links, Path& path, Qpn destination, std::uint8_t& link) {
  link = links[transport::kUplink] != nullptr ? transport::kUplink : transport::kLocalLink;
  return group_link(links).open_path(path, destination);
}

}  // namespace

int open_on_some_link(const Links& links, bool destination_is_own, Path& path, Qpn destination,
                      std::uint8_t& link) {
  if (path.destination.is_multicast()) return open_to_group(links, path, destination, link);
  Datapath* local = links[transport::kLocalLink].get();
  if (local != nullptr && destination_is_own) {
    link = transport::kLocalLink;
    const int failure = local->open_path(path, destination);
    // Nobody here has this QP: a stack other than ours may, behind the same address.
    if (failure != EHOSTUNREACH) return failure;
  }
  Datapath* uplink = links[transport::kUplink].get();
  if (uplink == nullptr) {
    // As on a real network, an address that exists may have nobody behind a QPN, or not any more:
    // what is sent is lost, and the retries tell.
    return local != nullptr && destination_is_own ? 0 : ENETUNREACH;
  }
  link = transport::kUplink;
  return uplink->open_path(path, destination);
}

Datapath& group_link(const Links& links) {
  Datapath* const uplink = links[transport::kUplink].get();
  return uplink != nullptr ? *uplink : *links[transport::kLocalLink];
}

}  // namespace uroce::engine
