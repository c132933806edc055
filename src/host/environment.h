// SPDX-License-Identifier: BSD-2-Clause
// The process environment as a value, so that what is decided from it can be tested, and so that
// `uroce run` can build the environment of its program before it becomes that program.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace uroce::host {

using Environment = std::map<std::string, std::string, std::less<>>;

// Empty in a program that runs with more rights than its caller (setuid, file capabilities): there
// the environment belongs to somebody else.
[[nodiscard]] Environment current_environment();

// Empty when it is not set; nothing here tells "not set" from "set to nothing".
[[nodiscard]] std::string_view variable(const Environment& environment, std::string_view name);

}  // namespace uroce::host
