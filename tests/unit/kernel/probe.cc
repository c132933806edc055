// SPDX-License-Identifier: BSD-2-Clause
#include "probe.h"

#include <cstdio>
#include <cstring>

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return 2;
  for (const probe::Actions* actions : {&probe::forms(), &probe::scenarios(), &probe::rdma_cm()}) {
    const auto action = actions->find(arguments[1]);
    if (action == actions->end()) continue;
    try {
      std::printf("%s\n", action->second(arguments[2]).c_str());
    } catch (const probe::Failure& failure) {
      std::printf("%s\n", strerrorname_np(failure.error));
    }
    return 0;
  }
  return 2;
}
