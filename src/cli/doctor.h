// SPDX-License-Identifier: BSD-2-Clause
// `uroce doctor`: what is wrong with the set-up, and what to do. Exit status 0 when usable.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/doctor_findings.h"

namespace uroce::cli {

[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings, bool colour);

[[nodiscard]] int examine_host(const Arguments& arguments);

}  // namespace uroce::cli
