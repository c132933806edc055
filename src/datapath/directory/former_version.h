// SPDX-License-Identifier: BSD-2-Clause
// A folder whose directory file was laid out by another version of uroce, as an upgrade leaves it.
// While a process of that version lives, nobody else may come in: two layouts in one file, or two
// files for one port, would hurt both. When none lives, what it left is removed.
//
// Whoever uses a directory file has a record lock in it (shared_file.h), in any version, so a lock
// on all of it is got only when nobody does. It is held while files are removed, the directory
// last: whoever else wants to do the same waits, and a process killed in between leaves a folder
// that the next one clears.
#pragma once

namespace uroce::datapath {

enum class Clearance {
  kCleared,  // by us, or by somebody else meanwhile: open the folder's file anew
  kInUse,    // by a process of the other version
  kFailed,   // errno says why
};

// `directory` is the open file `folder`/directory; all that this process has of it is lost.
[[nodiscard]] Clearance clear_former_version(int folder, int directory);

}  // namespace uroce::datapath
