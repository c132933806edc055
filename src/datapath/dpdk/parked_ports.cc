// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/parked_ports.h"

#include <unistd.h>

#include <map>
#include <mutex>

namespace uroce::datapath {
namespace {

struct Parked {
  OwnedPort owned;
  pid_t owner = 0;
};

constinit std::mutex mutex;

// Never destroyed: closing these at exit is what is to be avoided.
std::map<std::string, Parked>& parked() {
  static auto* const ports = new std::map<std::string, Parked>;
  return *ports;
}

}  // namespace

OwnedPort take_parked_port(const std::string& name) {
  const std::lock_guard lock(mutex);
  const auto found = parked().find(name);
  if (found == parked().end() || found->second.owner != getpid()) return {};
  OwnedPort owned = std::move(found->second.owned);
  parked().erase(found);
  return owned;
}

void park_port(const std::string& name, OwnedPort owned) {
  const std::lock_guard lock(mutex);
  parked()[name] = {std::move(owned), getpid()};
}

}  // namespace uroce::datapath
