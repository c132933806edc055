// SPDX-License-Identifier: BSD-2-Clause
// The TOML file of the configuration: where it is, and its keys as assignments. Apart from
// config.h, so that the provider, which never reads a file, carries no TOML parser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/config.h"
#include "host/environment.h"

namespace uroce::host {

// $UROCE_CONFIG, else the first that exists of $XDG_CONFIG_HOME/uroce/uroce.toml (or
// ~/.config/uroce/uroce.toml) and /etc/uroce.toml; empty when there is none.
[[nodiscard]] std::string find_config_file(const Environment& environment);

[[nodiscard]] Result<std::vector<Assignment>> read_config_file(const std::string& path);
// The same of what is in a file; `path` is for the errors.
[[nodiscard]] Result<std::vector<Assignment>> parse_config_file(std::string_view text,
                                                                const std::string& path);

}  // namespace uroce::host
