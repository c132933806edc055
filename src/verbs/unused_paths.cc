// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/unused_paths.h"

#include <utility>

#include "verbs/ah.h"

namespace uroce::verbs {
namespace {

bool is_needed(const AhPath& path) { return path.core.users.load(std::memory_order_acquire) != 0; }

// Out of `paths`, by their `next`.
AhPath* take_unneeded(AhPath*& paths) {
  AhPath* taken = nullptr;
  for (AhPath** link = &paths; *link != nullptr;) {
    AhPath* const path = *link;
    if (is_needed(*path)) {
      link = &path->next;
    } else {
      *link = path->next;
      path->next = taken;
      taken = path;
    }
  }
  return taken;
}

void close(engine::Engine& engine, AhPath* paths) {
  if (paths == nullptr) return;
  engine::Engine::Section section(engine);
  for (AhPath* path = paths; path != nullptr; path = path->next) {
    section.close_path(path->core.path, path->core.link);
  }
}

}  // namespace

void UnusedPaths::add(AhPath* paths) {
  const std::lock_guard guard(mutex_);
  while (paths != nullptr) {
    AhPath* const path = std::exchange(paths, paths->next);
    path->next = std::exchange(paths_, path);
  }
}

void UnusedPaths::sweep(engine::Engine& engine) {
  if (engine.is_abandoned()) return;
  AhPath* unneeded = nullptr;
  {
    const std::lock_guard guard(mutex_);
    unneeded = take_unneeded(paths_);
  }
  close(engine, unneeded);
  while (unneeded != nullptr) delete std::exchange(unneeded, unneeded->next);
}

}  // namespace uroce::verbs
