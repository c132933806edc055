// SPDX-License-Identifier: BSD-2-Clause
// What a fuzz target claims. Both the fuzzer and the replay of stored inputs take an abort for a
// finding.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace uroce::fuzz {

inline void check(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", claim);
  std::abort();
}

}  // namespace uroce::fuzz
