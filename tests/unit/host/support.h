// SPDX-License-Identifier: BSD-2-Clause
// A network namespace that is gone with its thread, and addresses as text.
#pragma once

#include <functional>
#include <string>

#include "host/addresses.h"
#include "support/temporary_folder.h"

namespace uroce::host::test {

using uroce::test::TemporaryFolder;

inline Gid gid(const char* address) { return parse_address(address).value(); }

// Runs `body` on a thread in a network namespace of its own, where `lo` is up. False without the
// right to make one; then nothing has run.
[[nodiscard]] bool in_new_network(const std::function<void()>& body);

// `ip ...` in the calling thread's namespace; true when it succeeded.
bool ip(const std::string& arguments);

}  // namespace uroce::host::test
