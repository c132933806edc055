// SPDX-License-Identifier: BSD-2-Clause
// A library whose constructor runs before the preloaded one's: MPI's and UCX's look for devices
// there.
#include <unistd.h>

namespace {

bool found = false;

[[gnu::constructor]] void look_early() {
  found = access("/sys/class/infiniband/uroce97/node_type", R_OK) == 0;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] bool early_library_found_tree();
bool early_library_found_tree() { return found; }
