// SPDX-License-Identifier: BSD-2-Clause
#include "unit/host/support.h"

#include <sched.h>

#include <cstdlib>
#include <thread>

namespace uroce::host::test {

bool in_new_network(const std::function<void()>& body) {
  bool made = false;
  std::thread([&] {
    made = unshare(CLONE_NEWNET) == 0;
    if (made) {
      ip("link set lo up");
      body();
    }
  }).join();
  return made;
}

bool ip(const std::string& arguments) {
  return std::system(("ip " + arguments + " > /dev/null 2>&1").c_str()) == 0;
}

}  // namespace uroce::host::test
