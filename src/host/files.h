// SPDX-License-Identifier: BSD-2-Clause
// Small files and directories: read whole, written whole, replaced so that a reader sees the old
// or the new text and nothing between; flock held by objects.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "posix/descriptor.h"
#include "uroce/time.h"

namespace uroce::host {

// Success without a value: Result<Done>.
using Done = std::monostate;

// "path: what: No such file or directory", with errno as it stands.
[[nodiscard]] Error system_error(std::string_view path, std::string_view what);

[[nodiscard]] std::optional<std::string> read_file(const std::string& path);
// The first line, without its end; empty when there is none.
[[nodiscard]] std::string read_line(const std::string& path);
[[nodiscard]] Result<Done> write_file(const std::string& path, std::string_view text);
// There is something of this name, perhaps a link.
[[nodiscard]] bool exists(const std::string& path);
// Where there is none.
[[nodiscard]] Result<Done> write_missing_file(const std::string& path, std::string_view text);
// Through a temporary file in the same directory, and rename.
[[nodiscard]] Result<Done> replace_file(const std::string& path, std::string_view text);

// Names in a directory but "." and "..", sorted; empty when it cannot be read.
[[nodiscard]] std::vector<std::string> list_directory(const std::string& path);
// mkdir -p, every new one with `mode`.
[[nodiscard]] Result<Done> make_directories(const std::string& path, mode_t mode);
// rm -r; what is not there is no error.
void remove_tree(const std::string& path);

enum class LockKind { kShared, kExclusive };

// Who holds such a lock holds it for a moment; who does not let go was stopped.
inline constexpr Duration kLockPatience = milliseconds(15'000);
// Holds flock on the file, which is made when missing. Closed on exec. ETIMEDOUT, and a message
// that says what to do, when nobody let go of it.
[[nodiscard]] Result<posix::Descriptor> lock_file(const std::string& path, LockKind kind,
                                                  Duration patience = kLockPatience);
// An empty descriptor when somebody else holds it.
[[nodiscard]] Result<posix::Descriptor> try_lock_file(const std::string& path, LockKind kind);

}  // namespace uroce::host
