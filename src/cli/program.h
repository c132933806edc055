// SPDX-License-Identifier: BSD-2-Clause
// What a program is, as far as it decides whether uroce can get into it.
#pragma once

#include <optional>
#include <string>

#include "cli/elf.h"
#include "host/environment.h"

namespace uroce::cli {

struct ProgramFacts {
  std::string name;
  std::string path;  // empty: not found
  bool is_executable = false;
  bool is_setuid = false;  // or setgid
  bool has_file_capabilities = false;
  std::optional<ElfFacts> elf;  // nothing: a script, or not readable
};

// Looks it up as execvp does.
[[nodiscard]] ProgramFacts examine_program(const std::string& name,
                                           const host::Environment& environment);

// Why a preloaded library does not get into it; empty when it does.
[[nodiscard]] std::string why_not_preloadable(const ProgramFacts& program);

}  // namespace uroce::cli
