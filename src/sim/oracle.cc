// SPDX-License-Identifier: BSD-2-Clause
#include "sim/oracle.h"

#include <cstdarg>
#include <cstdio>

namespace uroce::sim {

void Oracle::violated(const char* format, ...) {
  if (is_violated()) return;
  std::array<char, 320> text;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  story_ = text.data();
  world_.trace.line(world_.now(), "VIOLATED: %s", story_.c_str());
}

}  // namespace uroce::sim
