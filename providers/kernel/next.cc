// SPDX-License-Identifier: BSD-2-Clause
// Finds the functions behind ours, and the tree.
//
// All of it happens at once in a constructor, while the process has one thread: dlsym takes the
// loader's lock, so a first call from a signal handler or a vforked child must not need it, and
// what the program does to its environment later changes nothing. Other libraries' constructors
// may run before ours (MPI's and UCX's look for devices there); their first call comes here too.
#include <dlfcn.h>

#include "interposed.h"
#include "tree.h"

namespace uroce::kernel {

NextFunctions next_functions;

namespace {

struct Row {
  const char* name;
  void** function;
};

const Row kRows[] = {
#define UROCE_ROW(name, result, parameters) {#name, reinterpret_cast<void**>(&next_functions.name)},
    UROCE_INTERPOSED(UROCE_ROW)
#undef UROCE_ROW
};

[[gnu::constructor]] void start() { prepare(); }

}  // namespace

void prepare() {
  find_tree();
  for (const Row& row : kRows) *row.function = dlsym(RTLD_NEXT, row.name);
}

}  // namespace uroce::kernel
