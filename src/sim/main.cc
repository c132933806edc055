// SPDX-License-Identifier: BSD-2-Clause
// uroce-sim: see --help.
#include <cstdio>

#include "sim/goodput.h"

int main() {
  std::fputs(uroce::sim::goodput_table().c_str(), stdout);
  return 0;
}
