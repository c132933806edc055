// SPDX-License-Identifier: BSD-2-Clause
// Whose a port is: on this host, by its directory, where it was named or somebody may come to
// listen; in this process only, where it was drawn for a connection.
#include <linux/capability.h>

#include <cerrno>

#include "cma/agent.h"
#include "posix/capability.h"

namespace uroce::cma {
namespace {

constexpr int kAttempts = 64;
// The kernel's rdma_cm goes by this number whatever ip_unprivileged_port_start says.
constexpr std::uint16_t kFirstUnprivileged = 1'024;

datapath::Directory::ServiceClaim service_claim(const Id& id, Qpn block_holder) {
  return {.id = id.service_id(id.source.port),
          .address = id.service_address(),
          .shares = id.reuses_address,
          .block = qpn_block(block_holder)};
}

bool is_taken(int error) { return error == EADDRINUSE || error == EADDRNOTAVAIL; }

}  // namespace

// A file that the program has just closed may hold the port still.
int Agent::claim_port(Id& id) {
  const int error = try_to_claim_port(id);
  if (error == 0 || !(is_taken(error) || error == ENOSPC)) return error;
  close_abandoned_files();
  const int again = try_to_claim_port(id);
  return again == ENOSPC ? EADDRNOTAVAIL : again;
}

int Agent::try_to_claim_port(Id& id) {
  if (id.source.port == 0) return claim_any_port(id);
  if (id.source.port < kFirstUnprivileged && !posix::has_capability(CAP_NET_BIND_SERVICE)) {
    return EACCES;
  }
  if (const int error = ports_.check(id, false); error != 0) return error;
  const int error = claim_in_directory(id);
  if (error == 0) ports_.insert(id);
  return error;
}

// Port 0 is any that nobody has.
int Agent::claim_any_port(Id& id) {
  int error = EADDRNOTAVAIL;
  for (int attempt = 0; attempt < kAttempts && is_taken(error); ++attempt) {
    if (!draw_port(id)) return EADDRNOTAVAIL;
    error = claim_in_directory(id);
    if (error == 0) return 0;
    ports_.erase(id);
    id.source.port = 0;
  }
  return error;
}

int Agent::claim_in_directory(Id& id) {
  std::uint32_t claim = 0;
  const int error = directory().claim_service(service_claim(id, *block_holder_), claim);
  if (error == 0) id.claim = claim;
  return error;
}

bool Agent::draw_port(Id& id) {
  const auto port = ports_.choose(id, directory().own_slot().index, random_);
  if (!port) return false;
  id.source.port = *port;
  ports_.insert(id);
  return true;
}

int Agent::tell_of_claim(const Id& id) {
  if (!id.claim) return 0;
  return directory().change_service(*id.claim, service_claim(id, *block_holder_));
}

void Agent::release_port(Id& id) {
  if (id.claim) directory().release_service(*id.claim);
  id.claim.reset();
  ports_.erase(id);
}

}  // namespace uroce::cma
