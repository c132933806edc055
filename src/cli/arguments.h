// SPDX-License-Identifier: BSD-2-Clause
// The command line: which command, which flags of the configuration, which program.
//
// PROGRAM and what follows it are cut off before CLI11 sees them: it looks for its own subcommands
// everywhere, and a program may well be called `devices` or take `--help`.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "host/config.h"

namespace uroce::cli {

enum class Command { kRun, kDevices, kDoctor };

struct Arguments {
  Command command = Command::kRun;
  std::vector<host::Assignment> flags;
  std::string config_file;  // empty: where it is usually
  bool json = false;
  std::vector<std::string> program;  // with its arguments
};

// What to do, or the exit status when everything was said already (help, version, an error).
[[nodiscard]] std::variant<Arguments, int> parse_arguments(std::vector<std::string> words);

}  // namespace uroce::cli
