// SPDX-License-Identifier: BSD-2-Clause
#include "host/environment.h"

#include <sys/auxv.h>
#include <unistd.h>

namespace uroce::host {

Environment current_environment() {
  Environment result;
  if (getauxval(AT_SECURE) != 0 || environ == nullptr) return result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    // The first of two entries with one name wins, as with getenv.
    if (equals != std::string_view::npos) {
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return result;
}

std::string_view variable(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view{} : std::string_view(found->second);
}

}  // namespace uroce::host
