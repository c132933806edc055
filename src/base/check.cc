// SPDX-License-Identifier: BSD-2-Clause
#include "base/check.h"

namespace uroce {

constinit CheckHook check_hook = nullptr;

void check_failed(const char* condition, const char* file, int line) {
  if (check_hook != nullptr) check_hook(condition, file, line);
  __builtin_trap();
}

}  // namespace uroce
