// SPDX-License-Identifier: BSD-2-Clause
// Device trees that nobody needs any more: a link that changed its speed or an interface that came
// back with another index leaves one behind.
//
// A tree stays while any of this is true:
//   - a process has one of its devices open, so it holds the tree;
//   - a process was started with it (UROCE_TREE in its environment): it may open a device yet, as a
//     shell's next command;
//   - it was prepared within kKeptFor: its program may not be there yet, and programs that /proc
//     does not show (of another container) get that long to open a device.
//
// The folder of a network namespace goes when it has no tree any more and trees.lock was not used
// within kKeptFor either: who has a device open holds a tree, so nobody uses what else is there.
//
// Under the lock of trees.lock, as everything that changes trees, so no `uroce run` is just about
// to hand the tree out; and what goes away goes by rename, so whoever wants it has all of it or
// finds nothing.
#pragma once

#include <ctime>
#include <string>

#include "host/runtime_dir.h"

namespace uroce::host {

inline constexpr std::time_t kKeptFor = 24 * 60 * 60;

// In the folders of all network namespaces, because a namespace that is gone has no `uroce run` of
// its own any more. What cannot be removed stays.
void remove_unused_trees(const RuntimeDirectory& directory, const std::string& processes = "/proc");

}  // namespace uroce::host
